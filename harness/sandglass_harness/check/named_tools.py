"""Finds the tools that a script names, for the person who decides whether it may run."""

import ast

from .names import is_dynamic
from .syntax import parse, split_lines
from .walk import Walk

# Names and modules by which a script can find a function whose name its text does not show.
_FINDERS = frozenset(
    "eval exec compile globals locals vars getattr __import__ importlib inspect gc ctypes marshal pickle runpy *".split()
)


def find_named_tools(source, names):
    """Returns those of the `names` of tools that the text of a script shows, in their order.

    Returns all of them for a script that can find names at run time, as by `eval`, and for a text that is not Python.
    """
    tree, _ = parse(source, split_lines(source))
    try:
        if tree is None or is_dynamic(Walk(tree)):
            return list(names)
    except RecursionError:  # nested too deep to tell
        return list(names)
    found, texts = set(), set()
    for node in ast.walk(tree):
        found.update(_names_in(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    return list(names) if found & _FINDERS else [name for name in names if name in found or name in texts]


def _names_in(node):
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").partition(".")[0], *(alias.name for alias in node.names)]
    return ()
