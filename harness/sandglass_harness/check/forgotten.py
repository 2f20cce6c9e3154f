"""Finds uses of a tool as a value without a call, and of a call without an await."""

import ast

from .foreseen import NAME_ERROR, TYPE_ERROR
from .modules import find_module
from .report import cut, shorten
from .tools import format_required
from .uses import SHOW, Uses, find_assigned_name, find_value_use, is_future_attribute

_AWAITABLE = frozenset({"gather", "sleep", "wait", "wait_for", "to_thread"})


def check_forgotten(walk, known, report, dynamic):
    """Checks all names and calls. `dynamic` is True if the script may use variables dynamically."""
    uses = Uses(walk)
    for node, scope, foreseen in walk.names:
        if foreseen & (NAME_ERROR | TYPE_ERROR) or scope.unevaluated:
            continue
        signature = known.signature_of_name(node, scope)
        if signature is not None:
            _check_called(node, scope, signature, known, uses, report, dynamic)
    for node, scope, foreseen in walk.calls:
        if scope.is_async() and not foreseen & TYPE_ERROR:
            _check_awaited(node, scope, walk, known, uses, report, dynamic)


def _check_called(node, scope, signature, known, uses, report, dynamic):
    name, parent = signature["name"], node.parent
    use = find_value_use(node, scope, known)
    if use is not None and use is not SHOW or parent.__class__ in (ast.Await, ast.YieldFrom):
        hint = f"Call it: {format_required(signature)}."
        report.add("not_called", node, f"{name} is the function itself, not its result", hint)
    elif parent.__class__ is ast.Expr:
        report.add("not_called", node, f"{name} is named here, but not called", f"Call it: {format_required(signature)}.")
    else:
        target = find_assigned_name(node)
        if target is not None and not dynamic and _is_value_only(target, scope, known, uses):
            hint = f"Call it: {target.id} = {format_required(signature)}."
            message = f"{shorten(target.id)} is the function {name} itself: it is never called"
            report.add("not_called", node.parent, message, hint)


def _is_value_only(target, scope, known, uses):
    """True if the script never uses a variable as a function."""
    if scope.function().kind == "class" or not _is_bound_once(target, scope, uses):
        return False
    return all(_is_use_as_value(node, place, known) for node, place in uses.of(target.id, scope))


def _is_bound_once(target, scope, uses):
    bound = uses._walk.resolve(target.id, scope)
    return bound is not None and len(bound) == 1


def _is_use_as_value(node, scope, known):
    parent = node.parent
    truth = parent.__class__ in (ast.If, ast.While, ast.Assert) or (
        parent.__class__ is ast.UnaryOp and parent.op.__class__ is ast.Not
    )
    return truth or find_value_use(node, scope, known) is not None


def _check_awaited(node, scope, walk, known, uses, report, dynamic):
    what = _awaitable(node, scope, walk, known)
    if what is None or node.parent.__class__ is ast.Await:
        return
    use = find_value_use(node, scope, known)
    if use is not None:
        report.add("not_awaited", node, f"{what} returns an awaitable here, but it is {use}", _await_hint(node))
        return
    target = find_assigned_name(node)
    if target is None or dynamic or not _is_bound_once(target, scope, uses):
        return
    places = uses.of(target.id, scope)
    if places and all(find_value_use(each, place, known) is not None for each, place in places):
        message = f"{what} returns an awaitable here, but {shorten(target.id)} is used as its result"
        report.add("not_awaited", node, message, f"Write {shorten(target.id)} = await {_source(node)}.")


def _awaitable(node, scope, walk, known):
    """Returns the name of a call for a message if it certainly returns an awaitable, otherwise None."""
    func = node.func
    signature = known.find_signature(func, scope)
    if signature is not None:
        return f"{signature['name']}()" if known.is_awaited(signature) else None
    if func.__class__ is ast.Attribute and func.attr in _AWAITABLE:
        return f"asyncio.{func.attr}()" if find_module(func.value, scope, walk) == "asyncio" else None
    if func.__class__ is ast.Name:
        binding = walk.only_binding(func.id, scope)
        made = binding.node if binding is not None and binding.kind == "def" else None
        if made.__class__ is ast.AsyncFunctionDef and not made.decorator_list and not _yields(made, walk):
            return f"{shorten(func.id)}()"
    return None


def _yields(function, walk):
    return any(scope.node is function and scope.has_yield for scope in walk.scopes)


def _await_hint(node):
    call = _source(node)
    in_parentheses = node.parent.__class__ in (ast.Subscript, ast.Attribute)
    if in_parentheses and not is_future_attribute(getattr(node.parent, "attr", "x")):
        return f"Write (await {call}) with the parentheses, then take the field."
    return f"Write await {call}."


def _source(node):
    try:
        return cut(ast.unparse(node), 120)
    except (RecursionError, ValueError):
        return "the call"
