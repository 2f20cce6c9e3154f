"""Wrapper code: the preamble and postamble that a caller runs before and after a script.

It is trusted. The checker only needs the names that it binds, and whether it emits the result.
"""

import ast

from . import modules as check_modules
from .names import is_dynamic
from .report import one_violation
from .scope import ANYTHING
from .syntax import parse, split_lines
from .walk import Walk

_NO_TREE = ast.Module(body=[], type_ignores=[])


class WrapperCode:
    """The facts about a preamble and a postamble that a check of the script between them needs."""

    def __init__(self, preamble, postamble):
        first, wrong = _parse("preamble", preamble)
        last, also_wrong = _parse("postamble", postamble)
        self.violations = wrong or also_wrong  # at most one, and then the only one, because the script is not the cause
        walk = Walk(first)
        walk.stars = check_modules.find_star_names(walk)
        self.is_dynamic = is_dynamic(walk)  # True if the preamble may bind names dynamically
        self.names = _find_bound_names(walk)
        self.emits_result = _emits_result(first) or _emits_result(last)


def _find_bound_names(walk):
    """Returns the names that a text binds at its top level."""
    bindings = walk.module.bindings.items()
    names = {name for name, found in bindings if any(each.node.__class__ is not ast.ExceptHandler for each in found)}
    return names if walk.stars is ANYTHING else names.union(walk.stars)


def _emits_result(tree):
    """True if a text calls emit_result, even in a function, which the script may call."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "emit_result" for call in calls)


def _parse(name, text):
    """Returns (tree, violations)."""
    if not text:
        return _NO_TREE, []
    tree, found = parse(text, split_lines(text))
    if tree is not None:
        return tree, []
    line, message = found[0]["line"], found[0]["message"]
    hint = f"Correct the {name}: it is the caller's, not the script's."
    return _NO_TREE, one_violation("preamble_error", 1, 0, f"the {name} is not valid Python: line {line}: {message}", hint)
