"""What `emit_result` and `emit_intermediate` make of a value that JSON cannot carry (requirement HA-13).

The rules stand in docs/values.md. A value that no rule covers fails with an error that names its path and type;
nothing is changed in silence.
"""

import sys

from .explain import cut_head

MAX_DEPTH = 200
MAX_NAME, MAX_PATH = 80, 400  # characters of a path in a message
MAX_SAFE_INTEGER = 2**53 - 1


class ConversionError(TypeError):
    """A value that JSON cannot carry; the message names its path and type."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason
        self.path = []

    def __str__(self):
        return f"${cut_head(''.join(reversed(self.path)), MAX_PATH)}: {self.reason}"


def to_json(value):
    """A copy of `value` made of None, bool, int, finite float, str, list and dict with str keys."""
    return _convert(value, set())


def _convert(value, ancestors):
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return _integer(value)
    if kind is float:
        return _float(value)
    if len(ancestors) >= MAX_DEPTH:
        raise ConversionError(f"nested deeper than {MAX_DEPTH} levels")
    if id(value) in ancestors:
        raise ConversionError("the value contains itself")
    ancestors.add(id(value))
    try:
        if kind is dict:
            return _object(value.items(), ancestors)
        if kind is list or kind is tuple:
            return _array(value, ancestors)
        return _by_kind(value, ancestors)
    finally:
        ancestors.discard(id(value))


def _array(values, ancestors):
    result = []
    for value in values:
        kind = type(value)
        if kind is str or value is None or kind is bool:  # without a call: most values are plain
            result.append(value)
            continue
        try:
            result.append(_convert(value, ancestors))
        except ConversionError as error:
            error.path.append(f"[{len(result)}]")
            raise
    return result


def _object(pairs, ancestors):
    result = {}
    for key, value in pairs:
        name = key if type(key) is str else _key(key)
        if name in result:
            raise ConversionError(f"two keys become {name!r}")
        kind = type(value)
        if kind is str or value is None or kind is bool:
            result[name] = value
            continue
        try:
            result[name] = _convert(value, ancestors)
        except ConversionError as error:
            error.path.append(f".{cut_head(name, MAX_NAME)}")
            raise
    return result


def _by_kind(value, ancestors):
    import enum

    for module, convert in (("numpy", _from_numpy), ("pandas", _from_pandas)):
        if type(value).__module__.partition(".")[0] == module and module in sys.modules:
            converted = convert(sys.modules[module], value, ancestors)
            if converted is not NotImplemented:
                return converted
    if isinstance(value, enum.Enum):
        return _convert(value.value, ancestors)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return _float(float(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dict):
        # The base class's items(): a subclass may lie, or never end.
        return _object(dict.items(value), ancestors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _object(zip(value._fields, value), ancestors)
    if isinstance(value, (list, tuple, range)):
        return _array(value, ancestors)
    if isinstance(value, (set, frozenset)):
        try:
            return _array(sorted(value), ancestors)
        except TypeError:
            return _array(value, ancestors)
    if isinstance(value, (bytes, bytearray, memoryview)):
        import base64

        return base64.b64encode(bytes(value)).decode("ascii")
    if hasattr(type(value), "__dataclass_fields__"):
        names = [field.name for field in sys.modules["dataclasses"].fields(value)]  # without ClassVar and InitVar
        return _object([(name, getattr(value, name)) for name in names if hasattr(value, name)], ancestors)
    return _by_module(value, ancestors)


def _by_module(value, ancestors):
    """Types of modules that must be imported for such a value to exist."""

    def is_a(module, *names):
        loaded = sys.modules.get(module)
        kinds = tuple(k for k in (getattr(loaded, n, None) for n in names) if isinstance(k, type))
        return bool(kinds) and isinstance(value, kinds)

    if is_a("datetime", "datetime", "date", "time"):
        return value.isoformat()
    if is_a("datetime", "timedelta"):
        return _float(value.total_seconds())
    if is_a("decimal", "Decimal") or is_a("fractions", "Fraction") or is_a("uuid", "UUID"):
        return str(value)
    if is_a("pathlib", "PurePath") or is_a("ipaddress", "IPv4Address", "IPv6Address"):
        return str(value)
    if is_a("collections", "deque", "UserList") or isinstance(value, (type({}.keys()), type({}.values()))):
        return _array(value, ancestors)
    if is_a("collections", "ChainMap", "UserDict") or is_a("types", "MappingProxyType"):
        return _object(dict(value).items(), ancestors)
    if is_a("types", "SimpleNamespace"):
        return _object(vars(value).items(), ancestors)
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise ConversionError(f"a value of type {name} cannot be sent as JSON; convert it first")


def _from_numpy(numpy, value, ancestors):
    if isinstance(value, (numpy.datetime64, numpy.timedelta64)):
        return None if numpy.isnat(value) else str(value)
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "mM":
        return _array(list(value), ancestors)
    if isinstance(value, numpy.ndarray):
        return _convert(value.tolist(), ancestors)
    if isinstance(value, numpy.generic):
        plain = value.item()
        return NotImplemented if isinstance(plain, numpy.generic) else _convert(plain, ancestors)
    return NotImplemented


def _from_pandas(pandas, value, ancestors):
    if value is getattr(pandas, "NaT", None) or value is getattr(pandas, "NA", None):
        return None
    if isinstance(value, pandas.DataFrame):
        names = [str(name) for name in value.columns]
        if len(set(names)) != len(names):
            raise ConversionError("the columns of the DataFrame do not have different names")
        columns = [_pandas_values(value.iloc[:, i]) for i in range(len(names))]
        return _array([dict(zip(names, row)) for row in zip(*columns)], ancestors)
    if isinstance(value, (pandas.Series, pandas.Index)):
        return _array(_pandas_values(value), ancestors)
    if isinstance(value, pandas.Timestamp):
        return value.isoformat()
    if isinstance(value, pandas.Timedelta):
        return value.total_seconds()
    if isinstance(value, (pandas.Interval, pandas.Period)):
        return str(value)
    return NotImplemented


def _pandas_values(series):
    """pandas marks a missing value with NaN, NaT or NA: all become null."""
    return [None if missing else item for item, missing in zip(series.tolist(), series.isna().tolist())]


def _key(key):
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    try:
        plain = _convert(key, set())
    except ConversionError:
        plain = None
    if isinstance(plain, (list, dict)) or plain is None:
        raise ConversionError(f"a key of type {type(key).__qualname__} cannot be sent as JSON; use text")
    return plain if isinstance(plain, str) else repr(plain)


def _integer(value):
    if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return value
    raise ConversionError("an integer beyond 2**53 would lose digits in JSON; send str(value)")


def _float(value):
    if value - value == 0:
        return value
    raise ConversionError(f"{value!r} is not a JSON number; send None or str(value)")
