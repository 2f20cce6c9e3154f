"""Converts values to JSON, for `emit_result`, `emit_intermediate` and tool calls.

docs/values.md has the rules. A value that no rule covers raises an error with its path and type; nothing is changed silently.
"""

import sys

from ..caps import MAX_DEPTH, MAX_NULL_PATHS, MAX_PATH, MAX_SAFE_INTEGER
from ..text import cut_head

MAX_NAME = 80  # characters of one key in a path


class ConversionError(TypeError):
    """A value that JSON cannot represent. The message names its path and type."""

    __module__ = "__main__"  # reported and looked up as a name of the script

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason
        self.path = []

    def __str__(self):
        return f"${cut_head(''.join(reversed(self.path)), MAX_PATH)}: {self.reason}"


def to_json(value):
    """Returns a copy of `value` made of None, bool, int, finite float, str, list, and dict with str keys."""
    copy, nulls = to_json_with_nulls(value)
    if nulls is not None:
        error = ConversionError("nan is not a JSON number; send None or str(value)")
        error.path.append(nulls["paths"][0][1:])
        raise error
    return copy


def to_json_with_nulls(value, show=None):
    """Returns (copy, nulls). The copy has None in place of each NaN. `nulls` has their `count` and the first `paths`, or is None if
    there are none. `show(value)` returns plain JSON for a value that no rule covers, or None."""
    ancestors = _Ancestors()
    ancestors.show = show
    copy = _convert(value, ancestors)
    if not ancestors.hold_nan:
        return copy, None
    holder = [copy]
    nulls = {"count": 0, "paths": []}
    _replace_nan(holder, None, nulls)
    return holder[0], nulls


class _Ancestors(set):
    """The ids of the containers around the current value. `hold_nan` is set at the first NaN. Without one, no second walk over the
    copy is needed to replace NaNs and list their paths."""

    hold_nan = False
    show = None


def _replace_nan(plain, path, nulls):
    """Replaces each NaN in a list or dict of plain JSON by None. `path` leads to that container, and is None for the holder."""
    for key, value in enumerate(plain) if type(plain) is list else plain.items():
        kind = type(value)
        if kind is not float and kind is not list and kind is not dict:
            continue
        here = [] if path is None else [*path, f"[{key}]" if type(plain) is list else f".{cut_head(key, MAX_NAME)}"]
        if kind is not float:
            _replace_nan(value, here, nulls)
        elif value != value:
            plain[key] = None
            nulls["count"] += 1
            if len(nulls["paths"]) < MAX_NULL_PATHS:
                nulls["paths"].append(cut_head("$" + "".join(here), MAX_PATH))


def _convert(value, ancestors):
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return _integer(value)
    if kind is float:
        return _float(value, ancestors)
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
        if kind is str or value is None or kind is bool:  # inlined to save a call, because most values are plain
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

    for module, convert in (("numpy", _from_numpy), ("pandas", _from_pandas), ("polars", _from_polars)):
        if type(value).__module__.partition(".")[0] == module and module in sys.modules:
            converted = convert(sys.modules[module], value, ancestors)
            if converted is not NotImplemented:
                return converted
    if isinstance(value, enum.Enum):
        return _convert(value.value, ancestors)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return _float(float(value), ancestors)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dict):
        # Not items() of a subclass, which may return anything or never end.
        return _object(dict.items(value), ancestors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _object(zip(value._fields, value), ancestors)
    if isinstance(value, (list, tuple, range)):
        return _array(value, ancestors)
    if isinstance(value, (set, frozenset)):
        return _array(_sort(value), ancestors)
    if isinstance(value, (bytes, bytearray, memoryview)):
        import base64

        return base64.b64encode(bytes(value)).decode("ascii")
    if hasattr(type(value), "__dataclass_fields__"):
        names = [field.name for field in sys.modules["dataclasses"].fields(value)]  # without ClassVar and InitVar
        return _object([(name, getattr(value, name)) for name in names if hasattr(value, name)], ancestors)
    return _by_module(value, ancestors)


def _sort(members):
    try:
        return sorted(members)
    except TypeError:  # some members are not comparable
        return members


def _by_module(value, ancestors):
    """Converts types of modules that only the script has imported, if it has."""

    def is_a(module, *names):
        loaded = sys.modules.get(module)
        kinds = tuple(k for k in (getattr(loaded, n, None) for n in names) if isinstance(k, type))
        return bool(kinds) and isinstance(value, kinds)

    if is_a("datetime", "datetime", "date", "time"):
        return value.isoformat()
    if is_a("datetime", "timedelta"):
        return _float(value.total_seconds(), ancestors)
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
    shown = None if ancestors.show is None else ancestors.show(value)
    if shown is not None:
        return shown
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
        return _array(_rows(pandas, value), ancestors)
    if isinstance(value, pandas.Series):
        return _from_series(pandas, value, ancestors)
    if isinstance(value, pandas.Index):
        return _array(_labels(value), ancestors)
    if isinstance(value, pandas.Timestamp):
        return value.isoformat()
    if isinstance(value, pandas.Timedelta):
        return value.total_seconds()
    if isinstance(value, (pandas.Interval, pandas.Period)):
        return str(value)
    return NotImplemented


def _from_polars(polars, value, ancestors):
    if isinstance(value, polars.DataFrame):
        return _array(value.to_dicts(), ancestors)
    if isinstance(value, polars.Series):
        return _array(value.to_list(), ancestors)
    return NotImplemented


def _rows(pandas, frame):
    """Returns a dict for each row. The levels of an index other than the default one become the first columns."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        raise ConversionError("the columns of the DataFrame do not have different names")
    columns = [_pandas_values(frame.iloc[:, i]) for i in range(len(names))]
    if not _is_default(pandas, frame.index):
        levels = _level_names(frame.index, names)
        columns = _levels(frame.index) + columns
        names = levels + names
    return [dict(zip(names, row)) for row in zip(*columns)]


def _from_series(pandas, series, ancestors):
    """Returns a list. With an index other than the default one, returns a dict by label, or a list of dicts if labels repeat,
    have several levels or cannot be keys."""
    values = _pandas_values(series)
    if _is_default(pandas, series.index):
        return _array(values, ancestors)
    levels = _levels(series.index)
    keys = _different_keys(levels[0]) if len(levels) == 1 else None
    if keys is not None:
        return _object(zip(keys, values), ancestors)
    names = _level_names(series.index, [])
    name = "value" if series.name is None or str(series.name) in names else str(series.name)
    if name in names:
        raise ConversionError(f"the Series and its index have the same name, {name!r}; rename one")
    return _array([dict(zip([*names, name], row)) for row in zip(*levels, values)], ancestors)


def _different_keys(labels):
    """Returns the labels as distinct keys of an object, or None if that is impossible."""
    try:
        keys = [label if type(label) is str else _key(label) for label in labels]
    except ConversionError:
        return None
    return None if any(label is None for label in labels) or len(set(keys)) != len(keys) else keys


def _is_default(pandas, index):
    """True for the default index, which counts rows from 0."""
    return type(index) is pandas.RangeIndex and index.start == 0 and index.step == 1 and index.name is None


def index_levels(pandas, index):
    """Returns (name, type, labels) of each level of an index; nothing for the default index."""
    if _is_default(pandas, index):
        return []
    kinds = [str(index.get_level_values(i).dtype) for i in range(index.nlevels)]
    names = ["" if name is None else str(name) for name in index.names]
    return list(zip(names, kinds, _levels(index)))


def _levels(index):
    """Returns the labels of each level of an index."""
    return [_pandas_values(index.get_level_values(i)) for i in range(index.nlevels)]


def _labels(index):
    levels = _levels(index)
    return levels[0] if len(levels) == 1 else list(zip(*levels))


def _level_names(index, columns):
    """Returns a name for each level: its own, or the one that `reset_index()` would use."""
    plain = "index" if index.nlevels == 1 and "index" not in columns else None
    names = [plain or f"level_{i}" if name is None else str(name) for i, name in enumerate(index.names)]
    taken = next((name for name in names if [*names, *columns].count(name) > 1), None)
    if taken is not None:
        raise ConversionError(f"two levels of the index, or a level and a column, have the name {taken!r}; rename one")
    return names


def _pandas_values(column):
    """Returns the values of a Series or an Index, with None for those that pandas marks as missing by NaN, NaT or NA."""
    return [None if missing else item for item, missing in zip(column.tolist(), column.isna().tolist())]


def _key(key):
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    try:
        plain = to_json(key)
    except ConversionError:
        plain = None
    if isinstance(plain, (list, dict)) or plain is None:
        raise ConversionError(f"a key of type {type(key).__qualname__} cannot be sent as JSON; use text")
    return plain if isinstance(plain, str) else repr(plain)


def _integer(value):
    if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return value
    raise ConversionError("an integer beyond 2**53 would lose digits in JSON; send str(value)")


def _float(value, ancestors):
    if value - value == 0:
        return value
    if value != value:
        ancestors.hold_nan = True
        return value
    raise ConversionError(f"{value!r} is not a JSON number; send None or str(value)")
