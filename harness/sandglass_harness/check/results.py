"""Finds uses of tool results that contradict their schema."""

import ast

from .foreseen import ATTRIBUTE_ERROR, KEY_ERROR, TYPE_ERROR
from .nearest import find_nearest
from .report import cut, join_names, shorten
from .uses import is_future_attribute

_ITERABLE = frozenset({"array", "string", "object"})
_NUMERIC = frozenset({"integer", "number", "boolean"})
_ASKS = frozenset({"isinstance", "hasattr", "type", "callable", "getattr"})
_LOOPS = frozenset("len sum list set tuple sorted enumerate reversed any all iter frozenset".split())
_NUMBERS = frozenset({"int", "float", "round", "abs"})
_CALLS = _LOOPS | _NUMBERS | {"range"}
_CONTEXTS = frozenset(
    {ast.Await, ast.Subscript, ast.Attribute, ast.For, ast.comprehension, ast.Starred, ast.YieldFrom, ast.BinOp, ast.Compare,
     ast.FormattedValue}
)  # fmt: skip
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_METHODS = {
    "object": frozenset(dir(dict)),
    "array": frozenset(dir(list)),
    "string": frozenset(dir(str)),
    "integer": frozenset(dir(int)),
    "number": frozenset(dir(int)) | frozenset(dir(float)),
    "boolean": frozenset(dir(bool)),
    "null": frozenset(dir(None)),
}


def check_results(walk, known, types, report):
    """Checks all uses of tool results."""
    _Results(walk, known, types, report).check()


class _Results:
    def __init__(self, walk, known, types, report):
        self._walk = walk
        self._known = known
        self._types = types
        self._report = report
        # A script that tests the type of a variable handles several types.
        self._asked = {
            call.args[0].id
            for call, _, _ in walk.calls
            if call.func.__class__ is ast.Name and call.func.id in _ASKS and call.args and _is_name(call.args[0])
        }

    def check(self):
        walk, foreseen_errors = self._walk, TYPE_ERROR | KEY_ERROR | ATTRIBUTE_ERROR
        if not self._known.tools:
            return
        subscripts = ((node, scope, 0) for node, scope in walk.subscripts)
        for uses in (walk.names, walk.calls, walk.attributes, subscripts):
            for node, scope, foreseen in uses:
                if foreseen & foreseen_errors or scope.unevaluated or not _is_relevant(node, node.parent):
                    continue
                if node.__class__ is ast.Call and node.parent.__class__ is ast.Await:
                    node = node.parent
                typed = self._types.of(node, scope)
                if typed is not None and typed.schema is not None and not self._is_asked(node):
                    self._check_use(node, typed, scope)

    def _is_asked(self, node):
        while node.__class__ in (ast.Subscript, ast.Attribute):
            node = node.value
        return _is_name(node) and node.id in self._asked

    def _check_use(self, node, typed, scope):
        parent = node.parent
        kind = parent.__class__
        if kind is ast.Subscript and parent.value is node:
            self._check_index(node, parent, typed)
        elif kind is ast.Attribute and parent.ctx.__class__ is ast.Load:
            self._check_attribute(node, parent, typed)
        elif kind is ast.Call and parent.func is node:
            self._report_use(node, typed, "called", f"write {_source(node)} without ().")
        elif kind in (ast.For, ast.comprehension) and parent.iter is node or kind in (ast.Starred, ast.YieldFrom):
            if not typed.types & _ITERABLE:
                counts = typed.types <= {"integer"}
                self._report_use(node, typed, "looped over", f"loop over range({_source(node)}), or over a list." if counts
                            else "loop over a list instead.")  # fmt: skip
        elif kind is ast.Call:
            self._check_argument(node, parent, typed, scope)
        elif kind is ast.BinOp:
            self._check_operator(node, parent, typed, scope)
        elif kind is ast.Compare:
            self._check_comparison(node, parent, typed, scope)
        elif kind is ast.FormattedValue:
            self._check_format(node, parent, typed)

    def _check_index(self, node, parent, typed):
        index, types = parent.slice, typed.types
        shown = _source(node)
        if index.__class__ is ast.Constant and isinstance(index.value, str):
            if not types & {"object"}:
                if types == {"array"}:
                    hint = f"take one element first, as in {shown}[0][{index.value!r}], or loop over it."
                else:
                    hint = f"use it as it is, without [{cut(repr(index.value), 40)}]."
                self._report_use(node, typed, "not a dict", hint)
            elif parent.ctx.__class__ is ast.Load and self._types.lacks_field(typed, index.value):
                self._report_field(parent, node, typed, index.value, "[{!r}]")
        elif index.__class__ is ast.Slice or _is_integer(index):
            if not types & {"array", "string"}:
                hint = f"take a field: {_list_fields(typed)}." if "object" in types else "use it as it is."
                self._report_use(node, typed, "not a list", hint)
        elif not types & _ITERABLE:
            self._report_use(node, typed, "neither a list nor a dict", "use it as it is.")

    def _check_attribute(self, node, parent, typed):
        attribute = parent.attr
        if is_future_attribute(attribute) or any(attribute in _METHODS[each] for each in typed.types):
            return
        if "object" in typed.types:
            if self._types.lacks_field(typed, attribute):
                self._report_field(parent, node, typed, attribute, ".{}")
            return
        shown = _source(node)
        if typed.types == {"array"}:
            hint = f"loop over it, as in: for item in {shown}."
            if attribute not in _METHODS["object"]:
                hint = f"take one element first, as in {shown}[0].{shorten(attribute)}, or loop over it."
        else:
            hint = f"use it as it is, without .{shorten(attribute)}."
        self._report_use(node, typed, f"which has no .{shorten(attribute)}", hint)

    def _report_field(self, place, node, typed, key, form):
        properties = typed.schema.get("properties") or {}
        meant = find_nearest(key, properties)
        has = f"It has {join_names(properties, 12)}."
        hint = has if meant is None else f"Did you mean {form.format(meant)}? {has}"
        self._report.add("result_type", place, f"{_source(node)} has no field {shorten(key)!r}", hint)

    def _check_argument(self, node, call, typed, scope):
        func = call.func
        if func.__class__ is not ast.Name or not call.args or call.args[0] is not node:
            return
        if not self._known.is_builtin(func, scope):
            return
        shown = _source(node)
        if func.id in _LOOPS and not typed.types & _ITERABLE:
            self._report_use(node, typed, f"which {func.id}() does not take", f"use it without {func.id}().")
        elif func.id in _NUMBERS and typed.types <= {"array", "object"}:
            hint = f"write len({shown}) for how many there are." if typed.types == {"array"} else f"take a field: {_list_fields(typed)}."
            self._report_use(node, typed, f"which {func.id}() does not take", hint)
        elif func.id == "range" and typed.types <= {"array", "object", "string"}:
            self._report_use(node, typed, "not a number", f"write range(len({shown})), or loop over it.")

    def _check_operator(self, node, parent, typed, scope):
        other = parent.right if parent.left is node else parent.left
        other_typed = self._types.of(other, scope)
        if other_typed is None:
            return
        left, right = (typed, other_typed) if parent.left is node else (other_typed, typed)
        if any(_accepts(parent.op.__class__, a, b) for a in left.types for b in right.types):
            return
        shown = _source(node)
        if "string" in other_typed.types and typed.types <= _NUMERIC:
            hint = f"write str({shown}), or an f-string with {{{shown}}} in it."
        elif typed.types == {"object"}:
            hint = f"take a field: {_list_fields(typed)}."
        elif typed.types == {"array"}:
            hint = f"write len({shown}) for how many there are, or loop over it."
        else:
            hint = f"convert it first, as in {'float' if typed.types == {'string'} else 'str'}({shown})."
        self._report.add(
            "result_type",
            parent,
            f"{cut(_source(parent), 80)} mixes {left.describe()} and {right.describe()}",
            f"{shown} is {_with_article(typed.describe())}: {hint}",
        )

    def _check_comparison(self, node, parent, typed, scope):
        if len(parent.ops) != 1:
            return
        op, other = parent.ops[0].__class__, parent.comparators[0]
        if op in (ast.In, ast.NotIn):
            if other is node and not typed.types & _ITERABLE:
                self._report_use(node, typed, "in which nothing can be looked up", f"compare with == {_source(node)}.")
            return
        other_typed = self._types.of(parent.left if other is node else other, scope)
        if op not in _ORDER or other_typed is None:
            return
        if any(_can_compare(a, b) for a in typed.types for b in other_typed.types):
            return
        shown = _source(node)
        hint = f"compare len({shown})." if typed.types == {"array"} else f"compare a field: {_list_fields(typed)}."
        if not typed.types & {"array", "object"}:
            hint = "convert one of the two first, as in float(text)."
        self._report_use(node, typed, f"not comparable with {other_typed.describe()}", hint)

    def _check_format(self, node, parent, typed):
        spec = parent.format_spec
        if spec is None or parent.conversion != -1 or len(spec.values) != 1 or spec.values[0].__class__ is not ast.Constant:
            return
        text = spec.values[0].value
        numeric = text[-1:] in "bdoxXeEfFgGn%" and text[-1:] != ""
        if typed.types <= {"array", "object", "null"} or typed.types == {"string"} and numeric:
            what = "take a field of it" if typed.types == {"object"} else "format it without the part after the :"
            self._report_use(node, typed, f"which the format :{cut(text, 20)} does not take", f"{what}.")

    def _report_use(self, node, typed, what, hint):
        shown, words = _source(node), typed.describe()
        sentence = what if what.startswith(("not ", "neither ", "which ", "in which ")) else f"cannot be {what}"
        joiner = ", " if sentence is what else " and "
        self._report.add("result_type", node, f"{shown} is {_with_article(words)}{joiner}{sentence}",
                         f"{shown} is {_with_article(words)}: {hint}")  # fmt: skip


def _is_relevant(node, parent):
    """True if the type of a node matters in `parent`. A quick test that excludes most nodes."""
    kind = parent.__class__
    if kind is ast.Call:
        return parent.func is node or (parent.func.__class__ is ast.Name and parent.func.id in _CALLS)
    return kind in _CONTEXTS


def _accepts(op, a, b):
    """True if an operator accepts operands of two JSON types."""
    if a in _NUMERIC and b in _NUMERIC:
        return True
    if op is ast.Add:
        return a == b and a in ("string", "array")
    if op is ast.Mult:
        return {a, b} <= {"string", "array", "integer", "number", "boolean"} and bool({a, b} & _NUMERIC)
    if op is ast.Mod:
        return a == "string"
    # Records are dicts, which `|` merges.
    return op is ast.BitOr and a == b == "object"


def _can_compare(a, b):
    return (a in _NUMERIC and b in _NUMERIC) or (a == b and a in ("string", "array"))


def _is_name(node):
    return node.__class__ is ast.Name


def _is_integer(node):
    if node.__class__ is ast.UnaryOp and node.op.__class__ is ast.USub:
        node = node.operand
    return node.__class__ is ast.Constant and node.value.__class__ is int


def _list_fields(typed):
    properties = (typed.schema or {}).get("properties")
    return join_names(properties, 8) if isinstance(properties, dict) and properties else "it is a dict"


def _with_article(words):
    if words in ("None",):
        return words
    return f"an {words}" if words[:1] in "aeiou" else f"a {words}"


def _source(node):
    try:
        return cut(ast.unparse(node), 60)
    except (RecursionError, ValueError):
        return "the value"
