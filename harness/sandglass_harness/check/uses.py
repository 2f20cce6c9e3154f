"""Finds uses of an expression that only some types support."""

import ast

# The uses of a value, as texts for messages.
INDEX, LOOP, OPERATOR, COMPARE, FORMAT, UNPACK, ATTRIBUTE, HAND_OUT, COUNT, SHOW = (
    "indexed", "looped over", "calculated with", "compared", "formatted", "unpacked", "asked for a field",
    "handed out", "passed to a function that needs its value", "printed",
)  # fmt: skip
_NEEDS_VALUE = frozenset(
    "len sum sorted list set tuple dict frozenset enumerate reversed any all abs round int float min max range".split()
)
_SHOWS = frozenset({"print", "str", "repr"})
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DISPLAYS = (ast.Dict, ast.List, ast.Tuple, ast.Set)
# Attributes of futures, and of every function.
_OF_FUTURES = frozenset(
    "add_done_callback remove_done_callback cancel cancelled done exception result get_loop set_result set_exception "
    "get_name set_name get_coro close send throw".split()
)


def is_future_attribute(attribute):
    """True if an awaitable has this attribute."""
    return attribute in _OF_FUTURES or attribute.startswith("_")


def find_value_use(node, scope, known):
    """Returns how the parent uses `node` as a value; None if it also accepts functions and awaitables."""
    parent = node.parent
    kind = parent.__class__
    if kind is ast.Subscript:
        return INDEX if parent.value is node else None
    if kind in (ast.For, ast.comprehension):
        return LOOP if parent.iter is node and not getattr(parent, "is_async", 0) else None
    if kind is ast.BinOp:
        formats = parent.op.__class__ is ast.Mod and parent.right is node and _is_text(parent.left)
        return None if parent.op.__class__ is ast.BitOr or formats else OPERATOR
    if kind is ast.AugAssign:
        return OPERATOR if parent.value is node and parent.op.__class__ not in (ast.BitOr, ast.Mod) else None
    if kind is ast.UnaryOp:
        return None if parent.op.__class__ is ast.Not else OPERATOR
    if kind is ast.Compare:
        return _comparison(node, parent)
    if kind is ast.FormattedValue:
        formats = parent.format_spec is not None and parent.conversion == -1  # !r converts it to text first
        return (FORMAT if formats else SHOW) if parent.value is node else None
    if kind is ast.Starred:
        return UNPACK
    if kind is ast.Attribute:
        return ATTRIBUTE if parent.ctx.__class__ is ast.Load and not is_future_attribute(parent.attr) else None
    return _argument(node, scope, known)


def _comparison(node, parent):
    sides = [parent.left, *parent.comparators]
    place = next(i for i, side in enumerate(sides) if side is node)
    for number, op in enumerate(parent.ops):
        if place not in (number, number + 1):
            continue
        other = sides[number + 1 if place == number else number]
        if op.__class__ in _ORDER or (op.__class__ in (ast.In, ast.NotIn) and place == number + 1):
            return COMPARE
        if op.__class__ in (ast.Eq, ast.NotEq) and other.__class__ is ast.Constant and other.value is not None:
            return COMPARE
    return None


def _argument(node, scope, known):
    inner, parent = node, node.parent
    while parent.__class__ in _DISPLAYS:
        inner, parent = parent, parent.parent
    if parent.__class__ is ast.keyword:
        inner, parent = parent, parent.parent
    if parent.__class__ is not ast.Call or inner is parent.func:
        return None
    signature = known.signature_of_name(parent.func, scope)
    if signature is not None:
        takes_functions = "awaits" in signature  # a Python tool may accept them; the host accepts only JSON
        return HAND_OUT if signature["name"] != "describe_tool" and not takes_functions else None
    if inner is not node or parent.func.__class__ is not ast.Name or not known.is_builtin(parent.func, scope):
        return None
    if parent.func.id in _NEEDS_VALUE:
        return COUNT
    return SHOW if parent.func.id in _SHOWS else None


def _is_text(node):
    return node.__class__ is ast.JoinedStr or isinstance(getattr(node, "value", None), str)


class Uses:
    """The places that read each variable of a script."""

    def __init__(self, walk):
        self._walk = walk
        self._by_name = None

    def of(self, binding_name, scope):
        """Returns `[(node, scope)]` of the places that read the binding of a name in this scope."""
        if self._by_name is None:
            self._by_name = {}
            for node, place, _ in self._walk.names:
                self._by_name.setdefault(node.id, []).append((node, place))
        bound = self._walk.resolve(binding_name, scope)
        found = self._by_name.get(binding_name, [])
        return [(node, place) for node, place in found if self._walk.resolve(binding_name, place) is bound]


def find_assigned_name(node):
    """Returns the variable of `name = node` if the statement has no other target, otherwise None."""
    parent = node.parent
    if parent.__class__ is ast.Assign and len(parent.targets) == 1 and parent.targets[0].__class__ is ast.Name:
        return parent.targets[0]
    if parent.__class__ is ast.AnnAssign and parent.target.__class__ is ast.Name and parent.value is node:
        return parent.target
    return None
