"""One walk over the syntax tree of a script. It finds the scopes and their bindings, and every name, attribute and call.

It uses its own stack instead of recursion, so that no script is nested too deep for it. `nodes` has the handlers of each type of
node.
"""

import ast
import sys

from .nodes import HANDLERS
from .scope import Binding, Scope

_LAZY_ANNOTATIONS = sys.version_info >= (3, 14)
# Fields without child nodes.
_PLAIN = frozenset(
    "ctx op ops kind type_comment attr id arg name asname module level conversion simple is_async rest kwd_attrs str".split()
)
_fields = {}


class Walk:
    """The parts of a script. Each node gets a `parent`."""

    def __init__(self, tree):
        self.tree = tree
        self.module = Scope("module", tree, None)
        self.scopes = [self.module]
        self.names = []  # (Name that is read, scope, foreseen errors)
        self.attributes = []  # (Attribute, scope, foreseen)
        self.calls = []  # (Call, scope, foreseen)
        self.subscripts = []  # (Subscript, scope)
        self.imports = []  # (statement, alias, scope, foreseen)
        self.bound = []  # (name, node, scope): every binding, global and nonlocal statement
        self.others = []  # (node, scope) of types that only `strict` checks
        self.stars = ()  # names that star imports bind; ANYTHING if they are unknown
        self.asked = set()  # names of attributes in calls of hasattr and getattr
        self.lazy = _LAZY_ANNOTATIONS or _has_future_annotations(tree)  # annotations are not evaluated
        self._stack = []
        self._run()
        self._move_declared()

    def resolve(self, name, scope):
        """Returns the bindings that a name may refer to, or None if the script does not bind it."""
        inside_class = True
        while scope is not None:
            if name in scope.globals:
                return self.module.bindings.get(name)
            if scope.kind != "class" or inside_class:
                found = scope.bindings.get(name)
                if found is not None:
                    return found
            if scope.kind not in ("unevaluated", "types"):
                inside_class = False
            scope = scope.parent
        if name in self.stars:
            return self.module.bindings["*"]
        return None

    def only_binding(self, name, scope):
        """Returns the binding of a name that has exactly one."""
        found = self.resolve(name, scope)
        return found[0] if found is not None and len(found) == 1 else None

    # ── for the handlers of nodes ─────────────────────────────────────────────────────────────────────────

    def push(self, node, parent, scope, foreseen):
        """Pushes a node with its scope and the errors that the surrounding code foresees."""
        if node is not None:
            node.parent = parent
            if node.__class__ is not ast.Constant:
                self._stack.append((node, scope, foreseen))

    def push_all(self, nodes, parent, scope, foreseen):
        """Pushes several nodes."""
        for node in nodes:
            self.push(node, parent, scope, foreseen)

    def push_children(self, node, scope, foreseen, without=()):
        """Pushes all children of a node, except those of the fields in `without`."""
        stack = self._stack
        for field in _fields_of(node.__class__):
            value = getattr(node, field, None)
            if value.__class__ is list:
                if field in without:
                    continue
                for item in value:
                    if item is not None:
                        item.parent = node
                        if item.__class__ is not ast.Constant:
                            stack.append((item, scope, foreseen))
            elif isinstance(value, ast.AST):
                value.parent = node
                if value.__class__ is not ast.Constant:
                    stack.append((value, scope, foreseen))

    def open_scope(self, kind, node, parent):
        """Opens a scope inside another."""
        scope = Scope(kind, node, parent)
        self.scopes.append(scope)
        return scope

    def bind(self, name, kind, node, scope, value=None):
        """Records that a node binds a name in a scope. See Binding."""
        self.bound.append((name, node, scope))
        scope.bindings.setdefault(name, []).append(Binding(kind, node, scope, value))

    def bind_target(self, target, kind, value, parent, scope, foreseen):
        """Binds a target of an assignment or a loop. The binding of a plain name records the value."""
        target.parent = parent
        if target.__class__ is ast.Name:
            self.bind(target.id, kind, target, scope, value)
        else:
            self.push(target, parent, scope, foreseen)

    # ── the walk ────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self):
        stack = self._stack
        self.push_all(self.tree.body, self.tree, self.module, 0)
        handlers = HANDLERS
        while stack:
            node, scope, foreseen = stack.pop()
            handler = handlers.get(node.__class__)
            if handler is None:
                self.push_children(node, scope, foreseen)
            else:
                handler(self, node, scope, foreseen)

    def _move_declared(self):
        """Moves bindings of `global` and `nonlocal` names, which are declared for the whole scope."""
        for scope in self.scopes:
            for name in scope.globals:
                if scope is not self.module:
                    moved = scope.bindings.pop(name, [])
                    if moved:
                        self.module.bindings.setdefault(name, []).extend(moved)
            for name in scope.nonlocals:
                moved = scope.bindings.pop(name, [])
                owner = scope.parent
                while owner is not None and (owner.kind == "class" or name not in owner.bindings):
                    owner = owner.parent
                if owner is not None and moved:
                    owner.bindings[name].extend(moved)


def _fields_of(kind):
    found = _fields.get(kind)
    if found is None:
        plain = _PLAIN | {"value"} if kind in (ast.Constant, ast.MatchSingleton) else _PLAIN
        found = _fields[kind] = tuple(each for each in kind._fields if each not in plain)
    return found


def _has_future_annotations(tree):
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            if any(alias.name == "annotations" for alias in node.names):
                return True
    return False
