"""Describes the variables of a session, and completes names. Omits details that would need code of the cells."""

import builtins
import keyword
import re
import sys
import types

from ..text import cut_head

MAX_VARIABLES, MAX_COMPLETIONS, MAX_NAME = 1000, 200, 200
_CONTAINERS = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
_SIZED_SHALLOW = (*_CONTAINERS, int, float, complex, bool, type(None))
# Libraries whose `shape`, `nbytes` and attributes are cheap and change nothing.
_KNOWN = ("numpy", "pandas", "polars", "pyarrow", "scipy", "torch", "xarray", "geopandas", "sklearn", "matplotlib", "PIL")
_WORD = re.compile(r"(?:[^\W\d]\w*\s*\.\s*)*(?:[^\W\d]\w*)?\Z")
_KEY = re.compile(r"((?:[^\W\d]\w*\s*\.\s*)*[^\W\d]\w*)\[\s*(['\"])([^'\"\\\n]*)\Z")
_MAX_PREFIX = 500


def describe(namespace):
    """Returns {name, type, shape, bytes} of each variable that cells have bound, in order. `shape` is a list or None; `bytes` is
    the memory of the value without the objects that it refers to, or None."""
    found = []
    for name in namespace.own_names():
        if len(found) == MAX_VARIABLES:
            break
        if type(name) is not str or name.startswith("__"):
            continue
        value = namespace.scope.get(name)
        found.append({"name": cut_head(name, MAX_NAME), "type": _type_of(value), "shape": _shape_of(value), "bytes": _bytes_of(value)})
    return found


def complete(namespace, code, cursor):
    """Returns the sorted completions of the word before `cursor`: variables, keywords and builtins; attributes after a dot; keys
    after a quote in brackets."""
    before = code[max(cursor - _MAX_PREFIX, 0) : cursor].rpartition("\n")[2]
    key = _KEY.search(before)
    if key is not None:
        return _select_matches(_keys_of(_follow(key[1], namespace)), key[3])
    path, point, prefix = _WORD.search(before)[0].rpartition(".")
    if point:
        return _select_matches(_attributes_of(_follow(path, namespace)), prefix.strip())
    return _select_matches({*namespace.scope, *vars(builtins), *keyword.kwlist}, prefix)


def _select_matches(names, prefix):
    """Returns the names that begin with `prefix`. Omits names that begin with an underscore if the prefix is empty, and those that
    would have to be cut, because they would be wrong."""
    names = {name for name in names if type(name) is str and len(name) <= MAX_NAME and name.startswith(prefix)}
    return sorted(name for name in names if prefix or not name.startswith("_"))[:MAX_COMPLETIONS]


_MISSING = object()


def _follow(path, namespace):
    """Returns the value at `a.b.c`, or _MISSING."""
    first, *others = (part.strip() for part in path.split("."))
    value = namespace.scope.get(first, vars(builtins).get(first, _MISSING))
    for name in others:
        if value is _MISSING or not _is_plain(value, name):
            return _MISSING
        try:
            value = getattr(value, name)
        except Exception:
            return _MISSING
    return value


def _is_plain(value, name):
    """True if the attribute can be read without running code of the cells."""
    kind = type(value)
    if kind is types.ModuleType or _library_of(kind) is not None:
        return True
    attributes = {}
    for each in reversed(kind.__mro__):
        attributes.update(vars(each))
    if attributes["__getattribute__"] is not object.__getattribute__ or "__getattr__" in attributes:
        return False
    of_class = attributes.get(name)
    return isinstance(of_class, types.FunctionType) or not hasattr(type(of_class), "__get__")


def _attributes_of(value):
    if value is _MISSING:
        return ()
    try:
        return dir(value)
    except Exception:
        return ()


def _keys_of(value):
    kind = type(value)
    try:
        if issubclass(kind, dict):
            return list(dict.keys(value))
        if _library_of(kind) is not None:
            return list(getattr(value, "columns", ()))
    except Exception:
        pass
    return ()


def _type_of(value):
    kind = type(value)
    module = kind.__module__
    name = kind.__qualname__
    return cut_head(name if module in ("builtins", "__main__") else f"{module}.{name}", MAX_NAME)


def _library_of(kind):
    """Returns the library of a type if it is a known one, else None."""
    module = kind.__module__
    root = module.partition(".")[0] if type(module) is str else ""
    known = root in _KNOWN and root in sys.modules and getattr(sys.modules.get(module), kind.__name__, kind) is kind
    return root if known else None


def _shape_of(value):
    kind = type(value)
    if kind in _CONTAINERS:
        return [len(value)]
    if _library_of(kind) is None:
        return None
    try:
        shape = getattr(value, "shape", None)
        if shape is None:
            return [len(value)] if hasattr(kind, "__len__") else None
        return [int(each) for each in shape]
    except Exception:
        return None


def _bytes_of(value):
    kind = type(value)
    if kind in _SIZED_SHALLOW:
        return sys.getsizeof(value)
    library = _library_of(kind)
    if library is None:
        return None
    try:
        if library == "pandas":
            used = value.memory_usage(deep=False)
            return int(used.sum()) if hasattr(used, "sum") else int(used)
        if library == "polars":
            return int(value.estimated_size())
        return int(value.nbytes)
    except Exception:
        return None
