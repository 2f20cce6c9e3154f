"""The scopes of a script, and the bindings of names in them."""

import ast


class _Anything:
    def __contains__(self, _name):
        return True


ANYTHING = _Anything()


class Scope:
    """A module, class, function, comprehension, list of type parameters, or text that is never evaluated."""

    __slots__ = ("bindings", "globals", "has_yield", "kind", "node", "nonlocals", "parent", "unevaluated")

    def __init__(self, kind, node, parent):
        self.kind = kind
        self.node = node
        self.parent = parent
        self.bindings = {}
        self.globals = set()
        self.nonlocals = set()
        self.has_yield = False
        self.unevaluated = kind == "unevaluated" or (parent is not None and parent.unevaluated)

    def function(self):
        """Returns the enclosing function, lambda, class or module."""
        scope = self
        while scope.kind in ("comprehension", "unevaluated", "types"):
            scope = scope.parent
        return scope

    def is_async(self):
        """True if its code runs in a coroutine."""
        scope = self.function()
        while scope.kind == "class":
            scope = scope.parent.function()
        return isinstance(scope.node, ast.AsyncFunctionDef)


class Binding:
    """One place that binds a name. `value` is the assigned expression, the iterable of a loop, or the name of a module."""

    __slots__ = ("kind", "node", "scope", "value")

    def __init__(self, kind, node, scope, value=None):
        self.kind = kind  # assign, loop, def, class, param, import, from, star, other
        self.node = node
        self.scope = scope
        self.value = value
