"""Finds literals of a script that a JSON Schema excludes. Reports only certain mismatches."""

import ast

from .nearest import find_nearest
from .report import cut, join_names

MAX_DEPTH = 12
UNKNOWN = object()
PYTHON = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
_OF_BUILTIN = {
    "str": "string",
    "repr": "string",
    "len": "integer",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "sorted": "array",
    "dict": "object",
}


class Literal:
    """An expression whose JSON type is certain. `value` is UNKNOWN if it is not constant. `items` are the Literals (or None) of a
    list, `fields` those of a dict with constant keys."""

    __slots__ = ("fields", "items", "node", "type", "value")

    def __init__(self, node, type_, value=UNKNOWN, items=None, fields=None):
        self.node = node
        self.type = type_
        self.value = value
        self.items = items
        self.fields = fields


def read_literal(node, is_builtin, depth=0):
    """Returns the Literal of an expression, or None. `is_builtin(node)` is True if a Name refers to the builtin."""
    kind = node.__class__
    if kind is ast.Constant:
        return _constant(node, node.value)
    if depth > MAX_DEPTH:
        return None
    if kind is ast.UnaryOp:
        return _unary(node, is_builtin, depth)
    if kind is ast.JoinedStr:
        return Literal(node, "string")
    if kind in (ast.List, ast.Tuple):
        if any(each.__class__ is ast.Starred for each in node.elts):
            return Literal(node, "array")
        return Literal(node, "array", items=[read_literal(each, is_builtin, depth + 1) for each in node.elts])
    if kind in (ast.ListComp, ast.SetComp, ast.Set):
        return Literal(node, "array")
    if kind is ast.Dict:
        return _dict(node, is_builtin, depth)
    if kind is ast.DictComp:
        return Literal(node, "object")
    if kind is ast.BinOp and node.op.__class__ in (ast.Add, ast.Mod):
        left = read_literal(node.left, is_builtin, depth + 1)
        # str + any other type raises TypeError; str % anything is a str
        return Literal(node, "string") if left is not None and left.type == "string" else None
    if kind is ast.Call and node.func.__class__ is ast.Name and is_builtin(node.func):
        type_ = _OF_BUILTIN.get(node.func.id)
        return None if type_ is None else Literal(node, type_)
    return None


def _constant(node, value):
    if value is None:
        return Literal(node, "null", None)
    for kind, type_ in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")):
        if value.__class__ is kind:
            return Literal(node, type_, value)
    return None


def _unary(node, is_builtin, depth):
    if node.op.__class__ is ast.Not:
        return Literal(node, "boolean")
    inner = read_literal(node.operand, is_builtin, depth + 1)
    if inner is None or inner.type not in ("integer", "number") or node.op.__class__ is ast.Invert:
        return None
    if inner.value is UNKNOWN:
        return Literal(node, inner.type)
    return Literal(node, inner.type, -inner.value if node.op.__class__ is ast.USub else inner.value)


def _dict(node, is_builtin, depth):
    fields = {}
    for key, value in zip(node.keys, node.values):
        if key.__class__ is not ast.Constant or key.value.__class__ is not str:
            return Literal(node, "object")
        fields[key.value] = read_literal(value, is_builtin, depth + 1)
    return Literal(node, "object", fields=fields)


# ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def find_admitted_types(schema):
    """Returns the JSON types that a schema admits, or None if it does not restrict them."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return _types_of_values([schema["const"]])
    if isinstance(schema.get("enum"), list):
        return _types_of_values(schema["enum"])
    found = schema.get("type")
    if isinstance(found, str):
        found = {found}
    elif isinstance(found, list):
        found = {each for each in found if isinstance(each, str)}
    else:
        found = _types_of_branches(schema)
    if found is not None and schema.get("nullable") is True:
        found = {*found, "null"}
    return found if found and found <= PYTHON.keys() else None


def _types_of_values(values):
    found = {getattr(_constant(None, each), "type", "array" if isinstance(each, list) else "object") for each in values}
    return found or None


def _types_of_branches(schema):
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches:
            each = [find_admitted_types(branch) for branch in branches]
            return None if None in each else set().union(*each)
    for branch in schema.get("allOf") or []:
        found = find_admitted_types(branch)
        if found is not None:
            return found
    return None


def describe_types(schema):
    """Returns the types that a schema admits, by their Python names: `int`, `str or None`."""
    found = find_admitted_types(schema) or ()
    if "number" in found:
        found = set(found) - {"integer"}
    return " or ".join(PYTHON[each] for each in PYTHON if each in found)


class Exclusion:
    """The reason why a schema excludes a literal: the literal, a description of the `expected` values, and `write`, the source of a
    valid value, if known."""

    def __init__(self, given, expected, write=None):
        self.literal = given
        self.expected = expected
        self.write = write


def find_exclusion(schema, given, depth=0):
    """Returns the Exclusion, or None if the schema admits the literal or may admit it."""
    if given is None or depth > MAX_DEPTH or not isinstance(schema, dict):
        return None
    if given.type == "null" and schema.get("nullable") is True:
        return None
    for check in (_by_values, _by_type, _by_branches, _by_bounds, _by_length, _by_items, _by_fields):
        found = check(schema, given, depth)
        if found is not None:
            return found
    return None


def _by_values(schema, given, _depth):
    admitted = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(admitted, list) or not admitted:
        return None
    if given.value is UNKNOWN:
        types = _types_of_values(admitted)
        fits = given.type in types or (given.type in ("integer", "number") and types & {"integer", "number"})
        return None if fits else Exclusion(given, _one_of(admitted))
    # Because True == 1.
    if any(each == given.value and (each.__class__ is bool) is (given.value.__class__ is bool) for each in admitted):
        return None
    texts = [each for each in admitted if isinstance(each, str)]
    meant = find_nearest(given.value, texts) if isinstance(given.value, str) else None
    return Exclusion(given, _one_of(admitted), None if meant is None else repr(meant))


def _one_of(values):
    shown = [repr(each) for each in values[:20]]
    return shown[0] if len(values) == 1 else f"one of {join_names(shown, 20)}"


def _by_type(schema, given, _depth):
    if "const" in schema or isinstance(schema.get("enum"), list):
        return None
    admitted = find_admitted_types(schema)
    if admitted is None or _fits(given, admitted):
        return None
    return Exclusion(given, describe_types(schema), _rewrite(given, admitted))


def _fits(given, admitted):
    if given.type == "integer":
        return bool(admitted & {"integer", "number"})
    if given.type == "number" and "integer" in admitted:
        # For JSON Schema, 3.0 is an integer.
        return given.value is UNKNOWN or given.value == given.value // 1
    return given.type in admitted


def _rewrite(given, admitted):
    value = given.value
    if given.type == "string" and value is not UNKNOWN and admitted & {"integer", "number"}:
        digits = value.strip().removeprefix("-")
        if digits.isascii() and digits.isdigit():
            return value.strip()
    if given.type in ("integer", "number") and value is not UNKNOWN and "string" in admitted:
        return repr(str(value))
    if given.type == "number" and value is not UNKNOWN and "integer" in admitted and abs(value) < 1e15:
        return str(round(value))
    if given.type == "string" and "array" in admitted:
        return f"[{cut(repr(value), 60)}]" if value is not UNKNOWN else None
    if given.type == "string" and "boolean" in admitted and str(value).lower() in ("true", "false"):
        return str(value).capitalize()
    return None


def _by_branches(schema, given, depth):
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches:
            found = [find_exclusion(branch, given, depth + 1) for branch in branches]
            if all(each is not None for each in found):
                if len(found) == 1 or found[0].literal is not given:
                    return found[0]
                return Exclusion(given, " or ".join(dict.fromkeys(each.expected for each in found)), found[0].write)
    for branch in schema.get("allOf") or []:
        found = find_exclusion(branch, given, depth + 1)
        if found is not None:
            return found
    return None


def _by_bounds(schema, given, _depth):
    value = given.value
    if given.type not in ("integer", "number") or value is UNKNOWN:
        return None
    for keyword, words, fits in (
        ("minimum", "at least", lambda bound: value >= bound),
        ("maximum", "at most", lambda bound: value <= bound),
        ("exclusiveMinimum", "more than", lambda bound: value > bound),
        ("exclusiveMaximum", "less than", lambda bound: value < bound),
    ):
        bound = schema.get(keyword)
        if bound.__class__ in (int, float) and not fits(bound):
            plain = repr(bound) if keyword in ("minimum", "maximum") else None
            return Exclusion(given, f"{words} {bound}", plain)
    return None


def _by_length(schema, given, _depth):
    if given.type == "string" and given.value is not UNKNOWN:
        size, low, high, unit = len(given.value), "minLength", "maxLength", "characters"
    elif given.type == "array" and given.items is not None:
        size, low, high, unit = len(given.items), "minItems", "maxItems", "items"
    else:
        return None
    if isinstance(schema.get(low), int) and size < schema[low]:
        return Exclusion(given, f"at least {schema[low]} {unit}")
    if isinstance(schema.get(high), int) and size > schema[high]:
        return Exclusion(given, f"at most {schema[high]} {unit}")
    return None


def _by_items(schema, given, depth):
    if given.items is None or "prefixItems" in schema or isinstance(schema.get("items"), list):
        return None
    for item in given.items:
        found = find_exclusion(schema.get("items"), item, depth + 1)
        if found is not None:
            return found
    return None


def _by_fields(schema, given, depth):
    properties = schema.get("properties")
    if given.fields is None or not isinstance(properties, dict):
        return None
    for key, value in given.fields.items():
        found = find_exclusion(properties.get(key), value, depth + 1)
        if found is not None:
            return found
        if key not in properties and schema.get("additionalProperties") is False and "patternProperties" not in schema:
            return Exclusion(given, f"a dict with the keys {join_names(properties)}, not {key!r}")
    required = schema.get("required")
    for key in required if isinstance(required, list) else ():
        if key not in given.fields and key in properties and "default" not in (properties[key] or {}):
            return Exclusion(given, f"a dict with the key {key!r}")
    return None
