"""What a caller has run before and behind a script: it is trusted, and only what it leaves to the script counts."""

import ast


def names_bound_in(text):
    """Names that a text binds at its top level; none where it is no Python, which the run itself tells."""
    names = []
    waiting = list(_tree_of(text).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)):
            names.append(node.rest if isinstance(node, ast.MatchMapping) else node.name)
            waiting += ast.iter_child_nodes(node)
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            waiting += ast.iter_child_nodes(node)
    return [name for name in names if name is not None]


def emits_result(text):
    """Whether it calls emit_result."""
    calls = (node for node in ast.walk(_tree_of(text)) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "emit_result" for call in calls)


def _tree_of(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.Module(body=[], type_ignores=[])
