"""Finds scripts in mode plan that emit no result. Reports only certain cases: it does not know which conditions exclude each
other, or how often a loop runs."""

import ast

_DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_EXITS = frozenset({"exit", "quit", "_exit", "abort", "SystemExit", "fail"})


def check_flow(walk, known, report):
    """Checks a script. The caller ensures that no code can call emit_result without mentioning its name."""
    if "emit_result" in walk.module.bindings:
        return
    if any(_calls_unknown(call.func, scope, walk, known) for call, scope, _ in walk.calls):
        return
    running = _find_running(walk)
    places = [
        (node, scope)
        for node, scope, _ in walk.names
        if node.id == "emit_result" and walk.resolve("emit_result", scope) is None
    ]
    if any(_owner(scope) in running for _, scope in places):
        _check_branches(walk, [node for node, _ in places], report)
        return
    body = walk.tree.body
    hint = "Add emit_result(value) with the answer as the last line."
    message = "the script never calls emit_result, so it has no result"
    function = next((_owner(scope).node for _, scope in places if hasattr(_owner(scope).node, "name")), None)
    if function is not None:
        message = f"only {function.name} calls emit_result, and nothing calls {function.name}"
        hint = f"Call it at the end: {function.name}(). Only then does emit_result run."
    report.add("no_result", body[-1] if body else _Start, message, hint)


def _calls_unknown(func, scope, walk, known):
    """True for a function of the tools directory, which may emit the result itself."""
    return func.__class__ is ast.Name and func.id in known.opaque and walk.resolve(func.id, scope) is None


class _Start:
    lineno, col_offset = 1, 0


def _owner(scope):
    """Returns the function or lambda that the code of a scope belongs to; None for the module's own code."""
    scope = scope.function()
    while scope.kind == "class":
        scope = scope.parent.function()
    return None if scope.kind == "module" else scope


def _find_running(walk):
    """Returns the scopes that may run: the module (None), and functions that running code mentions."""
    inner = {}
    for scope in walk.scopes:
        if scope.kind in ("function", "lambda"):
            inner.setdefault(_owner(scope.parent), []).append(scope)
    mentions = {}
    for node, scope, _ in walk.names:
        mentions.setdefault(_owner(scope), set()).add(node.id)
    for node, scope, _ in walk.attributes:
        mentions.setdefault(_owner(scope), set()).add(node.attr)
    running, rest = {None}, [None]
    named, waiting = set(), {}
    while rest:
        owner = rest.pop()
        for scope in inner.get(owner, ()):
            if _runs_unnamed(scope) or scope.node.name in named:
                running.add(scope)
                rest.append(scope)
            else:
                waiting.setdefault(scope.node.name, []).append(scope)
        for name in mentions.get(owner, ()):
            named.add(name)
            for scope in waiting.pop(name, ()):
                running.add(scope)
                rest.append(scope)
    return running


def _runs_unnamed(scope):
    """True for code that can run without being mentioned, such as methods that operators and protocols call."""
    return scope.kind == "lambda" or bool(scope.node.decorator_list) or scope.parent.kind in ("class", "types")


def _check_branches(walk, places, report):
    chains = {_find_if_statement(place, walk.tree) for place in places}
    if len(chains) != 1 or None in chains:
        return
    (chain,) = chains
    body = walk.tree.body
    number = body.index(chain)
    ways_out = _WaysOut(walk)
    if any(ways_out.in_statements([each]) for each in body[number + 1 :]):
        return
    if any(ways_out.in_statements([each]) or _asserts(each) for each in body[:number]):
        return  # an earlier exit may exclude the branch without a result
    if any(each.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef) for each in _with_ancestors(places)):
        return
    emitting = set()
    for place in places:
        emitting.update(_with_ancestors([place]))
    empty = [branch for branch in _find_branches(chain) if branch is not None and not any(s in emitting for s in branch)]
    tests = _find_conditions(chain)
    missing_else = _find_branches(chain)[-1] is None and len(tests) == 1 and not _always_holds(tests[0])
    empty = [branch for branch in empty if not ways_out.in_statements(branch)]
    if not empty and not missing_else:
        return
    where = f"the branch at line {empty[0][0].lineno}" if empty else "the path around the if"
    message = f"{where} ends without a result: only other branches call emit_result"
    hint = "Add emit_result(value) to each branch, or once after the if."
    if not empty:
        hint = "Add an else: with emit_result(value), or call it once after the if."
    report.add("no_result_on_path", chain, message, hint)


def _find_if_statement(place, tree):
    """Returns the `if` of the module's own code around a place; None if there is none."""
    node = place
    while node.parent is not tree:
        node = node.parent
    # The first test always runs.
    inside = node.__class__ is ast.If and place not in ast.walk(node.test)
    return node if inside else None


def _find_branches(chain):
    """Returns the bodies of if, elif and else; None in place of a missing else."""
    found = [chain.body]
    while len(chain.orelse) == 1 and chain.orelse[0].__class__ is ast.If:
        chain = chain.orelse[0]
        found.append(chain.body)
    return [*found, chain.orelse or None]


def _find_conditions(chain):
    found = [chain.test]
    while len(chain.orelse) == 1 and chain.orelse[0].__class__ is ast.If:
        chain = chain.orelse[0]
        found.append(chain.test)
    return found


def _always_holds(test):
    return test.__class__ is ast.Constant or any(getattr(part, "id", "") == "__name__" for part in ast.walk(test))


def _with_ancestors(nodes):
    for node in nodes:
        while node is not None:
            yield node
            node = getattr(node, "parent", None)


def _asserts(statement):
    return any(part.__class__ is ast.Assert for part in ast.walk(statement))


class _WaysOut:
    """Finds statements that may end the script: raise, exit, or a call of a function of the script that may do so."""

    def __init__(self, walk):
        self._leaving = set(_EXITS)
        callers, leaving = {}, []
        for function in {scope.node for scope in walk.scopes if scope.kind == "function"}:
            raises, names = _find_raises_and_names(function.body)
            for name in names:
                callers.setdefault(name, []).append(function.name)
            if raises or names & _EXITS:
                leaving.append(function.name)
        while leaving:
            name = leaving.pop()
            if name not in self._leaving:
                self._leaving.add(name)
                leaving += callers.get(name, [])

    def in_statements(self, statements):
        """True if one of the statements may end the script."""
        raises, names = _find_raises_and_names(statements)
        return raises or bool(names & self._leaving)


def _find_raises_and_names(statements):
    """Returns (True if the statements raise, the names that they mention). Skips nested functions."""
    raises, names = False, set()
    rest = [each for each in statements if each.__class__ not in _DEFINITIONS]
    while rest:
        node = rest.pop()
        if node.__class__ in (ast.Raise, ast.Assert):
            raises = True
        names.add(getattr(node, "attr", None) or getattr(node, "id", None))
        rest += (each for each in ast.iter_child_nodes(node) if each.__class__ not in _DEFINITIONS)
    return raises, names
