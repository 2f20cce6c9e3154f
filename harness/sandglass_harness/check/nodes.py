"""The handlers of a walk, one for each type of node. They bind names, and push the children of the node with their scope."""

import ast
import sys

from .foreseen import ATTRIBUTE_ERROR, IMPORT_ERROR, is_environment_question, foreseen_by, is_never

_HAS_POSITIONS_IN_FSTRINGS = sys.version_info >= (3, 12)


def _visit_name(walk, node, scope, foreseen):
    if node.ctx.__class__ is ast.Load:
        walk.names.append((node, scope, foreseen))
    else:
        walk.bind(node.id, "other", node, scope)


def _visit_attribute(walk, node, scope, foreseen):
    walk.attributes.append((node, scope, foreseen))
    walk.push(node.value, node, scope, foreseen)


def _visit_call(walk, node, scope, foreseen):
    walk.calls.append((node, scope, foreseen))
    func = node.func
    if func.__class__ is ast.Name and func.id in ("hasattr", "getattr") and len(node.args) > 1:
        walk.asked.add(str(getattr(node.args[1], "value", "")))
    walk.push_children(node, scope, foreseen)


def _visit_subscript(walk, node, scope, foreseen):
    walk.subscripts.append((node, scope))
    walk.push_children(node, scope, foreseen)


def _visit_assign(walk, node, scope, foreseen):
    walk.push(node.value, node, scope, foreseen)
    for target in node.targets:
        walk.bind_target(target, "assign", node.value, node, scope, foreseen)


def _visit_annotated(walk, node, scope, foreseen):
    walk.push(node.value, node, scope, foreseen)
    kind = "other" if node.value is None else "assign"
    walk.bind_target(node.target, kind, node.value, node, scope, foreseen)
    dead = walk.lazy or (scope.kind == "function" and node.simple)
    _visit_annotation(walk, node.annotation, node, scope, foreseen, dead)


def _visit_annotation(walk, annotation, parent, scope, foreseen, dead):
    if annotation is not None:
        where = walk.open_scope("unevaluated", parent, scope) if dead else scope
        walk.push(annotation, parent, where, foreseen)


def _visit_walrus(walk, node, scope, foreseen):
    walk.push(node.value, node, scope, foreseen)
    owner = scope
    while owner.kind == "comprehension":
        owner = owner.parent
    walk.bind_target(node.target, "assign", node.value, node, owner, foreseen)


def _visit_augmented(walk, node, scope, foreseen):
    walk.push(node.value, node, scope, foreseen)
    walk.bind_target(node.target, "other", None, node, scope, foreseen)


def _visit_loop(walk, node, scope, foreseen):
    walk.bind_target(node.target, "loop", node.iter, node, scope, foreseen)
    walk.push(node.iter, node, scope, foreseen)
    walk.push_all(node.body, node, scope, foreseen)
    walk.push_all(node.orelse, node, scope, foreseen)


def _visit_comprehension(walk, node, scope, foreseen):
    inner = walk.open_scope("comprehension", node, scope)
    for number, part in enumerate(node.generators):
        part.parent = node
        walk.push(part.iter, part, inner if number else scope, foreseen)
        walk.bind_target(part.target, "loop", part.iter, part, inner, foreseen)
        walk.push_all(part.ifs, part, inner, foreseen)
    walk.push_children(node, inner, foreseen, without=("generators",))


def _visit_function(walk, node, scope, foreseen):
    walk.bind(node.name, "def", node, scope)
    walk.others.append((node, scope))
    walk.push_all(node.decorator_list, node, scope, foreseen)
    outer = _visit_type_parameters(walk, node, scope)
    inner = walk.open_scope("function", node, outer)
    _visit_arguments(walk, node, scope, outer, inner, foreseen)
    _visit_annotation(walk, node.returns, node, outer, foreseen, walk.lazy)
    walk.push_all(node.body, node, inner, foreseen)


def _visit_arguments(walk, node, scope, outer, inner, foreseen):
    args = node.args
    args.parent = node
    walk.push_all(args.defaults, args, scope, foreseen)
    walk.push_all(args.kw_defaults, args, scope, foreseen)
    for arg in (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg):
        if arg is not None:
            arg.parent = args
            walk.bind(arg.arg, "param", arg, inner)
            _visit_annotation(walk, arg.annotation, arg, outer, foreseen, walk.lazy)


def _visit_lambda(walk, node, scope, foreseen):
    inner = walk.open_scope("lambda", node, scope)
    _visit_arguments(walk, node, scope, scope, inner, foreseen)
    walk.push(node.body, node, inner, foreseen)


def _visit_class(walk, node, scope, foreseen):
    walk.bind(node.name, "class", node, scope)
    walk.others.append((node, scope))
    walk.push_all(node.decorator_list, node, scope, foreseen)
    outer = _visit_type_parameters(walk, node, scope)
    walk.push_all(node.bases, node, outer, foreseen)
    walk.push_all(node.keywords, node, outer, foreseen)
    walk.push_all(node.body, node, walk.open_scope("class", node, outer), foreseen)


def _visit_type_parameters(walk, node, scope):
    parameters = getattr(node, "type_params", None)
    if not parameters:
        return scope
    inner = walk.open_scope("types", node, scope)
    for parameter in parameters:
        parameter.parent = node
        walk.bind(parameter.name, "other", parameter, inner)
        lazy = walk.open_scope("unevaluated", node, inner)
        walk.push_children(parameter, lazy, 0)
    return inner


def _visit_type_alias(walk, node, scope, foreseen):
    walk.push(node.name, node, scope, foreseen)
    inner = _visit_type_parameters(walk, node, scope)
    _visit_annotation(walk, node.value, node, inner, foreseen, True)


def _visit_import(walk, node, scope, foreseen):
    for alias in node.names:
        alias.parent = node
        walk.imports.append((node, alias, scope, foreseen))
        if alias.asname is not None:
            walk.bind(alias.asname, "import", alias, scope, alias.name)
        else:
            walk.bind(alias.name.partition(".")[0], "import", alias, scope, alias.name.partition(".")[0])


def _visit_import_from(walk, node, scope, foreseen):
    for alias in node.names:
        alias.parent = node
        walk.imports.append((node, alias, scope, foreseen))
        if alias.name == "*":
            walk.bind("*", "star", alias, scope, node.module)
        else:
            walk.bind(alias.asname or alias.name, "from", alias, scope, f"{node.module}.{alias.name}")


def _visit_global(walk, node, scope, _foreseen):
    scope.globals.update(node.names)
    walk.bound.extend((name, node, scope) for name in node.names)


def _visit_nonlocal(walk, node, scope, _foreseen):
    scope.nonlocals.update(node.names)
    walk.bound.extend((name, node, scope) for name in node.names)


def _visit_try(walk, node, scope, foreseen):
    walk.others.append((node, scope))
    caught = foreseen
    for handler in node.handlers:
        caught |= IMPORT_ERROR if handler.type is None else foreseen_by([handler.type])
    walk.push_all(node.body, node, scope, caught)
    for part in (node.handlers, node.orelse, node.finalbody):
        walk.push_all(part, node, scope, foreseen)


def _visit_handler(walk, node, scope, foreseen):
    if node.name is not None:
        walk.bind(node.name, "other", node, scope)
    walk.push(node.type, node, scope, foreseen)
    walk.push_all(node.body, node, scope, foreseen)


def _visit_with(walk, node, scope, foreseen):
    caught = foreseen
    for item in node.items:
        item.parent = node
        if isinstance(item.context_expr, ast.Call):
            caught |= foreseen_by(item.context_expr.args)
        walk.push(item.context_expr, item, scope, foreseen)
        walk.push(item.optional_vars, item, scope, foreseen)
    walk.push_all(node.body, node, scope, caught)


def _visit_condition(walk, node, scope, foreseen):
    walk.push(node.test, node, scope, foreseen)
    if is_never(node.test) or any(is_environment_question(part) for part in ast.walk(node.test)):
        foreseen |= IMPORT_ERROR | ATTRIBUTE_ERROR
    if node.__class__ is ast.If:
        walk.push_all(node.body, node, scope, foreseen)
        walk.push_all(node.orelse, node, scope, foreseen)
    else:
        walk.push(node.body, node, scope, foreseen)
        walk.push(node.orelse, node, scope, foreseen)


def _visit_pattern_name(walk, node, scope, foreseen):
    name = node.rest if node.__class__ is ast.MatchMapping else node.name
    if name is not None:
        walk.bind(name, "other", node, scope)
    walk.push_children(node, scope, foreseen)


def _visit_for_strict(walk, node, scope, foreseen):
    walk.others.append((node, scope))
    walk.push_children(node, scope, foreseen)


def _visit_yield(walk, node, scope, foreseen):
    scope.function().has_yield = True
    walk.push_children(node, scope, foreseen)


def _visit_joined(walk, node, scope, foreseen):
    if not _HAS_POSITIONS_IN_FSTRINGS and node.end_lineno != node.lineno:
        for part in ast.walk(node):  # before 3.12, positions inside are not reliable
            if part is not node and hasattr(part, "lineno"):
                part.lineno, part.col_offset = node.lineno, node.col_offset
    walk.push_children(node, scope, foreseen)


# For nodes of other types, the walk pushes the children in the same scope.
HANDLERS = {
    ast.Name: _visit_name,
    ast.Attribute: _visit_attribute,
    ast.Call: _visit_call,
    ast.Subscript: _visit_subscript,
    ast.Assign: _visit_assign,
    ast.AnnAssign: _visit_annotated,
    ast.NamedExpr: _visit_walrus,
    ast.AugAssign: _visit_augmented,
    ast.For: _visit_loop,
    ast.AsyncFor: _visit_loop,
    ast.ListComp: _visit_comprehension,
    ast.SetComp: _visit_comprehension,
    ast.DictComp: _visit_comprehension,
    ast.GeneratorExp: _visit_comprehension,
    ast.FunctionDef: _visit_function,
    ast.AsyncFunctionDef: _visit_function,
    ast.Lambda: _visit_lambda,
    ast.ClassDef: _visit_class,
    ast.Import: _visit_import,
    ast.ImportFrom: _visit_import_from,
    ast.Global: _visit_global,
    ast.Nonlocal: _visit_nonlocal,
    ast.Try: _visit_try,
    ast.ExceptHandler: _visit_handler,
    ast.With: _visit_with,
    ast.AsyncWith: _visit_with,
    ast.If: _visit_condition,
    ast.IfExp: _visit_condition,
    ast.MatchAs: _visit_pattern_name,
    ast.MatchStar: _visit_pattern_name,
    ast.MatchMapping: _visit_pattern_name,
    ast.MatchClass: _visit_for_strict,
    ast.Yield: _visit_yield,
    ast.YieldFrom: _visit_yield,
    ast.JoinedStr: _visit_joined,
}
if hasattr(ast, "TryStar"):
    HANDLERS[ast.TryStar] = _visit_try
if hasattr(ast, "TypeAlias"):
    HANDLERS[ast.TypeAlias] = _visit_type_alias
