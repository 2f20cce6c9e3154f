"""The certain types of expressions: literals, results of tools with a result schema, and parts of those."""

import ast

from .schema import PYTHON, find_admitted_types, read_literal

MAX_DEPTH = 12
_DICT_METHODS = frozenset(dir(dict))
_LIST_CHANGES = frozenset({"append", "extend", "insert"})
_DICT_CHANGES = frozenset({"update", "setdefault", "__setitem__", "popitem", "pop", "clear"})


class Typed:
    """A value whose JSON types are known. `schema` is None for a literal."""

    __slots__ = ("schema", "types")

    def __init__(self, types, schema=None):
        self.types = types
        self.schema = schema

    def describe(self):
        """Returns the types as text: `int`, `str or None`."""
        kinds = self.types - {"integer"} if "number" in self.types else self.types
        return " or ".join(PYTHON[each] for each in PYTHON if each in kinds)


class Types:
    """Finds the Typed of expressions of one script."""

    def __init__(self, walk, known):
        self._walk = walk
        self._known = known
        self._of_binding = {}
        self._find_changes()

    def of(self, node, scope, depth=0):
        """Returns the Typed of an expression, or None if nothing is certain."""
        if depth > MAX_DEPTH:
            return None
        kind = node.__class__
        if kind is ast.Call:
            return self._of_call(node, scope)
        if kind is ast.Await:
            return self._of_awaited(node, scope)
        if kind is ast.Name:
            return self._of_name(node, scope, depth)
        if kind is ast.Subscript:
            return self._of_subscript(node, scope, depth)
        if kind is ast.Attribute:
            return self._of_field(self.of(node.value, scope, depth + 1), node.attr, of_attribute=True)
        found = read_literal(node, lambda name: self._known.is_builtin(name, scope))
        return None if found is None else Typed({found.type})

    def lacks_field(self, typed, key):
        """True if objects of this type certainly lack the field."""
        schema = typed.schema
        if schema is None or typed.types != {"object"} or key in self._stored or self._stores_anything:
            return False
        properties = schema.get("properties")
        closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        plain = not any(word in schema for word in ("allOf", "anyOf", "oneOf", "if", "$ref"))
        return closed and plain and isinstance(properties, dict) and key not in properties

    # ── kinds of expressions ────────────────────────────────────────────────────────────────────────────────────

    def _of_call(self, node, scope):
        signature = self._known.find_signature(node.func, scope)
        if signature is None:
            found = read_literal(node, lambda name: self._known.is_builtin(name, scope))
            return None if found is None else Typed({found.type})
        awaits = scope.is_async() and self._known.is_awaited(signature)
        return None if awaits else _of_schema(signature["result"])

    def _of_awaited(self, node, scope):
        if node.value.__class__ is not ast.Call:
            return None
        signature = self._known.find_signature(node.value.func, scope)
        is_awaited = signature is not None and self._known.is_awaited(signature)
        return _of_schema(signature["result"]) if is_awaited else None

    def _of_name(self, node, scope, depth):
        binding = self._walk.only_binding(node.id, scope)
        if binding is None or binding.value is None or binding.kind not in ("assign", "loop"):
            return None
        if self._known.is_predefined(node.id):
            return None
        if binding not in self._of_binding:
            self._of_binding[binding] = None  # ends a cycle as well
            self._of_binding[binding] = self._of_bound(binding, depth)
        return self._of_binding[binding]

    def _of_bound(self, binding, depth):
        if binding.kind == "loop" and binding.node.parent.__class__ is ast.AsyncFor:
            return None
        outer = binding.scope
        if binding.kind == "loop" and outer.kind == "comprehension":
            # the first iterable is evaluated in the outer scope
            if outer.node.generators[0].iter is binding.value:
                outer = outer.parent
        found = self.of(binding.value, outer, depth + 1)
        if found is None or found.schema is None:
            return None  # the script may have added to a literal
        return found if binding.kind == "assign" else self._item(found)

    def _item(self, typed):
        items = typed.schema.get("items") if typed.types == {"array"} else None
        if not isinstance(items, dict) or "prefixItems" in typed.schema or self._lists_change:
            return Typed({"string"}, {"type": "string"}) if typed.types == {"string"} else None
        return _of_schema(items)

    def _of_subscript(self, node, scope, depth):
        inner = self.of(node.value, scope, depth + 1)
        if inner is None or inner.schema is None:
            return None
        index = node.slice
        if index.__class__ is ast.Slice:
            return inner if inner.types <= {"array", "string"} else None
        if index.__class__ is ast.Constant and isinstance(index.value, str):
            return self._of_field(inner, index.value)
        found = read_literal(index, lambda name: self._known.is_builtin(name, scope))
        return self._item(inner) if found is not None and found.type == "integer" else None

    def _of_field(self, typed, key, of_attribute=False):
        if typed is None or typed.schema is None or typed.types != {"object"}:
            return None
        if key in self._stored or self._stores_anything or (of_attribute and key in _DICT_METHODS):
            return None
        if any(word in typed.schema for word in ("allOf", "anyOf", "oneOf")):
            return None
        properties = typed.schema.get("properties")
        return _of_schema(properties.get(key)) if isinstance(properties, dict) else None

    # ── changes to results by a script ────────────────────────────────────────────────────────────────────────

    def _find_changes(self):
        """Finds the fields of results that the script assigns, and whether it changes lists, because results are plain dicts and
        lists."""
        self._stored = set()
        self._stores_anything = self._lists_change = False
        for node, scope in self._walk.subscripts:
            if node.ctx.__class__ is ast.Load:
                continue
            if not self._may_be_result(node.value, scope):
                continue
            index = node.slice
            if index.__class__ is ast.Constant and isinstance(index.value, str):
                self._stored.add(index.value)
            elif index.__class__ is ast.Slice or index.__class__ is ast.Constant:
                self._lists_change = True
            else:
                self._lists_change = self._stores_anything = True
        for node, scope, _ in self._walk.attributes:
            if node.attr in _LIST_CHANGES and self._may_be_result(node.value, scope):
                self._lists_change = True
            elif node.attr in _DICT_CHANGES and self._may_be_result(node.value, scope):
                self._stores_anything = True

    def _may_be_result(self, node, scope):
        """False if an assignment shows that the script created the value itself."""
        if node.__class__ is not ast.Name:
            return True
        binding = self._walk.only_binding(node.id, scope)
        if binding is None or binding.kind != "assign" or binding.value is None:
            return True
        made = binding.value
        if made.__class__ in (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp):
            return False
        if made.__class__ is not ast.Call:
            return True
        func = made.func
        return not (func.__class__ is ast.Name and func.id in ("defaultdict", "Counter", "OrderedDict", "set", "deque"))


def _of_schema(schema):
    types = find_admitted_types(schema)
    return None if types is None else Typed(types, schema)
