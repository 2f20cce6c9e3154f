"""What a caller has run before and behind a script: it is trusted, and only what it leaves to the script counts."""

import ast

from . import check_modules
from .check_names import is_dynamic
from .check_report import single
from .check_scope import ANYTHING
from .check_syntax import parse, split_lines
from .check_walk import Walk

_NO_TREE = ast.Module(body=[], type_ignores=[])


class Around:
    """A preamble and a postamble, as a check of a script between them has to know them."""

    def __init__(self, preamble, postamble):
        first, wrong = _parsed("preamble", preamble)
        last, also_wrong = _parsed("postamble", postamble)
        self.violations = wrong or also_wrong  # one, where either is no Python: the script is not to be blamed for it
        walk = Walk(first)
        walk.stars = check_modules.star_names(walk)
        self.is_dynamic = is_dynamic(walk)  # the preamble may bind names that its text does not show
        self.names = _names_bound_in(walk)
        self.emits_result = _emits_result(first) or _emits_result(last)


def _names_bound_in(walk):
    """Names that a text leaves at its top level, as far as it shows them."""
    bindings = walk.module.bindings.items()
    names = {name for name, found in bindings if any(each.node.__class__ is not ast.ExceptHandler for each in found)}
    return names if walk.stars is ANYTHING else names.union(walk.stars)


def _emits_result(tree):
    """Whether it calls emit_result: in a function, too, which the script may call."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "emit_result" for call in calls)


def _parsed(name, text):
    """(tree, violations)"""
    if not text:
        return _NO_TREE, []
    tree, found = parse(text, split_lines(text))
    if tree is not None:
        return tree, []
    line, message = found[0]["line"], found[0]["message"]
    hint = f"Correct the {name}: it is the caller's, not the script's."
    return _NO_TREE, single("preamble_error", 1, 0, f"the {name} is no Python: line {line}: {message}", hint)
