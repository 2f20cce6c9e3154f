"""Finds the tools that a script mentions, for the person who decides whether it may run."""

import ast
import re

from . import modules as check_modules
from .names import BUILTINS, is_dynamic
from .report import Report
from .strict import check_strict
from .syntax import parse, split_lines
from .tools import Known
from .walk import Walk

_WORDS = re.compile(r"[A-Za-z_]\w*")


def find_named_tools(source, names, *, allow_modules=(), files=False):
    """Returns the tools among `names` that a script mentions, in the order of `names`.

    Returns all `names` for a script that the policy `strict` refuses, because it may look up names at run time, and for a text
    that is not Python.
    """
    check_modules.warm_up()
    lines = split_lines(source)
    tree, _ = parse(source, lines)
    try:
        if tree is None or _may_look_up_names(tree, lines, allow_modules, files):
            return list(names)
    except RecursionError:  # nested too deep to analyse
        return list(names)
    found = set()
    for node in ast.walk(tree):
        found.update(_names_in(node))
    return [name for name in names if name in found]


def _may_look_up_names(tree, lines, allow_modules, files):
    walk = Walk(tree)
    walk.stars = check_modules.find_star_names(walk)
    if is_dynamic(walk) or walk.stars:
        return True
    report = Report(lines)
    known = Known(walk, names=(), tools=(), allows=lambda _: True, builtins=BUILTINS)
    check_strict(walk, known, allow_modules, files, report)
    return len(report) > 0


def _names_in(node):
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.alias):
        return (node.name,)
    return _WORDS.findall(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ()
