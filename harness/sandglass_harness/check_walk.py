"""One walk over the tree of a script: its scopes, what each binds, and every place where a name, an attribute or a call
stands. It keeps a stack of its own, so that no script is nested too deep for it."""

import ast
import sys

from .check_foreseen import ATTRIBUTE_ERROR, IMPORT_ERROR, asks_first, foreseen_by, is_never
from .check_scope import Binding, Scope

_LAZY_ANNOTATIONS = sys.version_info >= (3, 14)
_PLACES_IN_FSTRINGS = sys.version_info >= (3, 12)
# Fields that hold no nodes to walk over.
_PLAIN = frozenset(
    "ctx op ops kind type_comment attr id arg name asname module level conversion simple is_async rest kwd_attrs str".split()
)
_fields = {}


class Walk:
    """What a script consists of. Nodes get a `parent`."""

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
        self.others = []  # (node, scope) of kinds that only `strict` looks at
        self.stars = ()  # what star imports bind, as far as it is known; ANYTHING where it is not
        self.asked = set()  # names of attributes that hasattr or getattr asks for
        self._lazy = _LAZY_ANNOTATIONS or _has_future_annotations(tree)
        self._stack = []
        self._run()
        self._move_declared()

    def resolve(self, name, scope):
        """The bindings that a name may mean, or None where nothing in the script binds it."""
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
        """The one binding of a name that has just one."""
        found = self.resolve(name, scope)
        return found[0] if found is not None and len(found) == 1 else None

    # ── the walk ────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self):
        stack = self._stack
        self._push_all(self.tree.body, self.tree, self.module, 0)
        handlers = _HANDLERS
        while stack:
            node, scope, foreseen = stack.pop()
            handler = handlers.get(node.__class__)
            if handler is None:
                self._push_children(node, scope, foreseen)
            else:
                handler(self, node, scope, foreseen)

    def _push(self, node, parent, scope, foreseen):
        if node is not None:
            node.parent = parent
            if node.__class__ is not ast.Constant:
                self._stack.append((node, scope, foreseen))

    def _push_all(self, nodes, parent, scope, foreseen):
        for node in nodes:
            self._push(node, parent, scope, foreseen)

    def _push_children(self, node, scope, foreseen, without=()):
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

    def _scope(self, kind, node, parent):
        scope = Scope(kind, node, parent)
        self.scopes.append(scope)
        return scope

    def _bind(self, name, kind, node, scope, value=None):
        self.bound.append((name, node, scope))
        scope.bindings.setdefault(name, []).append(Binding(kind, node, scope, value))

    def _bind_target(self, target, kind, value, parent, scope, foreseen):
        """A plain name remembers what it is bound to."""
        target.parent = parent
        if target.__class__ is ast.Name:
            self._bind(target.id, kind, target, scope, value)
        else:
            self._push(target, parent, scope, foreseen)

    def _move_declared(self):
        """What `global` and `nonlocal` say holds for the whole scope."""
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

    # ── kinds of nodes ──────────────────────────────────────────────────────────────────────────────────────────

    def _name(self, node, scope, foreseen):
        if node.ctx.__class__ is ast.Load:
            self.names.append((node, scope, foreseen))
        else:
            self._bind(node.id, "other", node, scope)

    def _attribute(self, node, scope, foreseen):
        self.attributes.append((node, scope, foreseen))
        self._push(node.value, node, scope, foreseen)

    def _call(self, node, scope, foreseen):
        self.calls.append((node, scope, foreseen))
        func = node.func
        if func.__class__ is ast.Name and func.id in ("hasattr", "getattr") and len(node.args) > 1:
            self.asked.add(str(getattr(node.args[1], "value", "")))
        self._push_children(node, scope, foreseen)

    def _subscript(self, node, scope, foreseen):
        self.subscripts.append((node, scope))
        self._push_children(node, scope, foreseen)

    def _assign(self, node, scope, foreseen):
        self._push(node.value, node, scope, foreseen)
        for target in node.targets:
            self._bind_target(target, "assign", node.value, node, scope, foreseen)

    def _annotated(self, node, scope, foreseen):
        self._push(node.value, node, scope, foreseen)
        kind = "other" if node.value is None else "assign"
        self._bind_target(node.target, kind, node.value, node, scope, foreseen)
        dead = self._lazy or (scope.kind == "function" and node.simple)
        self._annotation(node.annotation, node, scope, foreseen, dead)

    def _annotation(self, annotation, parent, scope, foreseen, dead):
        if annotation is not None:
            where = self._scope("unevaluated", parent, scope) if dead else scope
            self._push(annotation, parent, where, foreseen)

    def _walrus(self, node, scope, foreseen):
        self._push(node.value, node, scope, foreseen)
        owner = scope
        while owner.kind == "comprehension":
            owner = owner.parent
        self._bind_target(node.target, "assign", node.value, node, owner, foreseen)

    def _augmented(self, node, scope, foreseen):
        self._push(node.value, node, scope, foreseen)
        self._bind_target(node.target, "other", None, node, scope, foreseen)

    def _loop(self, node, scope, foreseen):
        self._bind_target(node.target, "loop", node.iter, node, scope, foreseen)
        self._push(node.iter, node, scope, foreseen)
        self._push_all(node.body, node, scope, foreseen)
        self._push_all(node.orelse, node, scope, foreseen)

    def _comprehension(self, node, scope, foreseen):
        inner = self._scope("comprehension", node, scope)
        for number, part in enumerate(node.generators):
            part.parent = node
            self._push(part.iter, part, inner if number else scope, foreseen)
            self._bind_target(part.target, "loop", part.iter, part, inner, foreseen)
            self._push_all(part.ifs, part, inner, foreseen)
        self._push_children(node, inner, foreseen, without=("generators",))

    def _function(self, node, scope, foreseen):
        self._bind(node.name, "def", node, scope)
        self.others.append((node, scope))
        self._push_all(node.decorator_list, node, scope, foreseen)
        outer = self._type_parameters(node, scope)
        inner = self._scope("function", node, outer)
        self._arguments(node, scope, outer, inner, foreseen)
        self._annotation(node.returns, node, outer, foreseen, self._lazy)
        self._push_all(node.body, node, inner, foreseen)

    def _arguments(self, node, scope, outer, inner, foreseen):
        args = node.args
        args.parent = node
        self._push_all(args.defaults, args, scope, foreseen)
        self._push_all(args.kw_defaults, args, scope, foreseen)
        for arg in (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg):
            if arg is not None:
                arg.parent = args
                self._bind(arg.arg, "param", arg, inner)
                self._annotation(arg.annotation, arg, outer, foreseen, self._lazy)

    def _lambda(self, node, scope, foreseen):
        inner = self._scope("lambda", node, scope)
        self._arguments(node, scope, scope, inner, foreseen)
        self._push(node.body, node, inner, foreseen)

    def _class(self, node, scope, foreseen):
        self._bind(node.name, "class", node, scope)
        self.others.append((node, scope))
        self._push_all(node.decorator_list, node, scope, foreseen)
        outer = self._type_parameters(node, scope)
        self._push_all(node.bases, node, outer, foreseen)
        self._push_all(node.keywords, node, outer, foreseen)
        self._push_all(node.body, node, self._scope("class", node, outer), foreseen)

    def _type_parameters(self, node, scope):
        parameters = getattr(node, "type_params", None)
        if not parameters:
            return scope
        inner = self._scope("types", node, scope)
        for parameter in parameters:
            parameter.parent = node
            self._bind(parameter.name, "other", parameter, inner)
            lazy = self._scope("unevaluated", node, inner)
            self._push_children(parameter, lazy, 0)
        return inner

    def _type_alias(self, node, scope, foreseen):
        self._push(node.name, node, scope, foreseen)
        inner = self._type_parameters(node, scope)
        self._annotation(node.value, node, inner, foreseen, True)

    def _import(self, node, scope, foreseen):
        for alias in node.names:
            alias.parent = node
            self.imports.append((node, alias, scope, foreseen))
            if alias.asname is not None:
                self._bind(alias.asname, "import", alias, scope, alias.name)
            else:
                self._bind(alias.name.partition(".")[0], "import", alias, scope, alias.name.partition(".")[0])

    def _import_from(self, node, scope, foreseen):
        for alias in node.names:
            alias.parent = node
            self.imports.append((node, alias, scope, foreseen))
            if alias.name == "*":
                self._bind("*", "star", alias, scope, node.module)
            else:
                self._bind(alias.asname or alias.name, "from", alias, scope, f"{node.module}.{alias.name}")

    def _global(self, node, scope, _foreseen):
        scope.globals.update(node.names)
        self.bound.extend((name, node, scope) for name in node.names)

    def _nonlocal(self, node, scope, _foreseen):
        scope.nonlocals.update(node.names)
        self.bound.extend((name, node, scope) for name in node.names)

    def _try(self, node, scope, foreseen):
        self.others.append((node, scope))
        caught = foreseen
        for handler in node.handlers:
            caught |= IMPORT_ERROR if handler.type is None else foreseen_by([handler.type])
        self._push_all(node.body, node, scope, caught)
        for part in (node.handlers, node.orelse, node.finalbody):
            self._push_all(part, node, scope, foreseen)

    def _handler(self, node, scope, foreseen):
        if node.name is not None:
            self._bind(node.name, "other", node, scope)
        self._push(node.type, node, scope, foreseen)
        self._push_all(node.body, node, scope, foreseen)

    def _with(self, node, scope, foreseen):
        caught = foreseen
        for item in node.items:
            item.parent = node
            if isinstance(item.context_expr, ast.Call):
                caught |= foreseen_by(item.context_expr.args)
            self._push(item.context_expr, item, scope, foreseen)
            self._push(item.optional_vars, item, scope, foreseen)
        self._push_all(node.body, node, scope, caught)

    def _condition(self, node, scope, foreseen):
        self._push(node.test, node, scope, foreseen)
        if is_never(node.test) or any(asks_first(part) for part in ast.walk(node.test)):
            foreseen |= IMPORT_ERROR | ATTRIBUTE_ERROR
        if node.__class__ is ast.If:
            self._push_all(node.body, node, scope, foreseen)
            self._push_all(node.orelse, node, scope, foreseen)
        else:
            self._push(node.body, node, scope, foreseen)
            self._push(node.orelse, node, scope, foreseen)

    def _pattern_name(self, node, scope, foreseen):
        name = node.rest if node.__class__ is ast.MatchMapping else node.name
        if name is not None:
            self._bind(name, "other", node, scope)
        self._push_children(node, scope, foreseen)

    def _for_strict(self, node, scope, foreseen):
        self.others.append((node, scope))
        self._push_children(node, scope, foreseen)

    def _yield(self, node, scope, foreseen):
        scope.function().has_yield = True
        self._push_children(node, scope, foreseen)

    def _joined(self, node, scope, foreseen):
        if not _PLACES_IN_FSTRINGS and node.end_lineno != node.lineno:
            for part in ast.walk(node):  # before 3.12 places inside are not to be relied on
                if part is not node and hasattr(part, "lineno"):
                    part.lineno, part.col_offset = node.lineno, node.col_offset
        self._push_children(node, scope, foreseen)


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


_HANDLERS = {
    ast.Name: Walk._name,
    ast.Attribute: Walk._attribute,
    ast.Call: Walk._call,
    ast.Subscript: Walk._subscript,
    ast.Assign: Walk._assign,
    ast.AnnAssign: Walk._annotated,
    ast.NamedExpr: Walk._walrus,
    ast.AugAssign: Walk._augmented,
    ast.For: Walk._loop,
    ast.AsyncFor: Walk._loop,
    ast.ListComp: Walk._comprehension,
    ast.SetComp: Walk._comprehension,
    ast.DictComp: Walk._comprehension,
    ast.GeneratorExp: Walk._comprehension,
    ast.FunctionDef: Walk._function,
    ast.AsyncFunctionDef: Walk._function,
    ast.Lambda: Walk._lambda,
    ast.ClassDef: Walk._class,
    ast.Import: Walk._import,
    ast.ImportFrom: Walk._import_from,
    ast.Global: Walk._global,
    ast.Nonlocal: Walk._nonlocal,
    ast.Try: Walk._try,
    ast.ExceptHandler: Walk._handler,
    ast.With: Walk._with,
    ast.AsyncWith: Walk._with,
    ast.If: Walk._condition,
    ast.IfExp: Walk._condition,
    ast.MatchAs: Walk._pattern_name,
    ast.MatchStar: Walk._pattern_name,
    ast.MatchMapping: Walk._pattern_name,
    ast.MatchClass: Walk._for_strict,
    ast.Yield: Walk._yield,
    ast.YieldFrom: Walk._yield,
    ast.JoinedStr: Walk._joined,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = Walk._try
if hasattr(ast, "TypeAlias"):
    _HANDLERS[ast.TypeAlias] = Walk._type_alias
