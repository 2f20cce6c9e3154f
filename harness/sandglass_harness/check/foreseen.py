"""Errors that a script foresees: those that it handles, and those that it prevents by a test (`hasattr`)."""

import ast

# The foreseen errors of a place in the code, as bits.
IMPORT_ERROR, NAME_ERROR, ATTRIBUTE_ERROR, TYPE_ERROR, KEY_ERROR, TOOL_ERROR = 1, 2, 4, 8, 16, 32
_FORESEEN = {
    "ImportError": IMPORT_ERROR,
    "ModuleNotFoundError": IMPORT_ERROR,
    "NameError": NAME_ERROR,
    "AttributeError": ATTRIBUTE_ERROR,
    "TypeError": TYPE_ERROR,
    "ToolError": TOOL_ERROR,
    "KeyError": KEY_ERROR,
    "LookupError": KEY_ERROR,
    "IndexError": KEY_ERROR,
    # A handler for all exceptions is a fallback for a missing module, but not for a misspelled name.
    "Exception": IMPORT_ERROR,
    "BaseException": IMPORT_ERROR,
}
_ENVIRONMENT_QUESTIONS = frozenset({"version_info", "TYPE_CHECKING", "hasattr", "platform", "find_spec", "hexversion"})


def foreseen_by(types):
    """Returns the errors, as bits, that a handler of these exception types foresees."""
    bits = 0
    for each in types:
        for part in each.elts if isinstance(each, ast.Tuple) else [each]:
            bits |= _FORESEEN.get(_name_of(part), 0)
    return bits


def is_environment_question(node):
    """True for a name of _ENVIRONMENT_QUESTIONS, os.name and platform.system(), by which a script tests its environment."""
    if node.__class__ is ast.Attribute and node.attr in ("name", "system"):
        return _name_of(node.value) in ("os", "platform")
    return _name_of(node) in _ENVIRONMENT_QUESTIONS


def is_never(test):
    return test.__class__ is ast.Constant and not test.value


def _name_of(node):
    return node.id if node.__class__ is ast.Name else node.attr if node.__class__ is ast.Attribute else None
