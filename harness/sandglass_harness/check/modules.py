"""Checks imports: modules that exist, and their public names. Imports none of the modules of a script."""

import ast
import importlib
import os
import sys
from importlib.machinery import PathFinder

from .foreseen import ATTRIBUTE_ERROR, IMPORT_ERROR
from .nearest import find_nearest
from .report import MAX_VIOLATIONS, join_names, shorten
from .scope import ANYTHING

# The modules that `strict` admits.
ADMITTED = (
    "json math typing copy dataclasses enum heapq bisect fractions re datetime collections collections.abc itertools "
    "functools statistics random string decimal textwrap time uuid hashlib base64 __future__"
).split()
_FOR_FILES = "csv io pathlib glob".split()
# Other modules whose names scripts often get wrong.
_WELL_KNOWN = "os os.path sys io csv operator contextlib pathlib calendar shutil glob tempfile threading".split()
_HIDDEN = frozenset({"sandglass_harness"})
_INSTEAD_OF_TOOLS = frozenset({"tools", "tool", "functions", "helpers", "sandglass", "sandbox", "agent", "api", "host"})
_POPULAR_PACKAGES = ("numpy", "pandas", "requests", "matplotlib", "scipy", "sklearn", "yaml", "bs4", "pytest")

_public = {}


def warm_up():
    """Imports the modules whose attributes are checked, only from the standard library. Idempotent."""
    if _public:
        return
    before = list(sys.path)
    here = os.path.dirname(os.__file__)
    sys.path[:] = [each for each in before if each.startswith(here) and "-packages" not in each or each.endswith(".zip")]
    try:
        for module in (*ADMITTED, *_WELL_KNOWN):
            try:
                _public[module] = _ModuleNames(importlib.import_module(module))
            except ImportError:  # this Python lacks it
                continue
    finally:
        sys.path[:] = before


class _ModuleNames:
    """The names of a module."""

    def __init__(self, module):
        self.all = frozenset(dir(module))
        exported = getattr(module, "__all__", None)
        is_module = type(os).__instancecheck__
        if exported is None:
            exported = [each for each in dir(module) if not each.startswith("_") and not is_module(getattr(module, each))]
        self.public = frozenset(exported)
        self.path = getattr(module, "__path__", None)
        self.name = module.__name__


def get_admitted(allow_modules, files):
    """Returns the modules that strict admits, including `allow_modules`."""
    return {*ADMITTED, *allow_modules, *(_FOR_FILES if files else ())}


def get_public_names(module):
    """Returns the `_ModuleNames` of a well-known module, or None."""
    return _public.get(module)


def has(module, attribute):
    """False if a well-known module certainly has neither an attribute nor a submodule of this name."""
    known = _public.get(module)
    if known is None or attribute in known.all or attribute.startswith("_"):
        return True
    return known.path is not None and PathFinder.find_spec(f"{known.name}.{attribute}", known.path) is not None


_SUBMODULES = frozenset(each.rpartition(".")[2] for each in (*ADMITTED, *_WELL_KNOWN) if "." in each)
_MAX_ALIASES = 4
_NO_MODULES = (frozenset(), False)
_existing = {}


def forget():
    """Clears the cached lookups of modules, because a package may be installed between two checks."""
    _existing.clear()
    sys.path_importer_cache.clear()


def exists(module):
    """True if a top-level module could be imported."""
    if module in _HIDDEN:
        return False
    if module in sys.builtin_module_names or module in ("__main__", "__future__", "builtins"):
        return True
    if module not in _existing:
        try:
            _existing[module] = PathFinder.find_spec(module) is not None
        except (ValueError, ImportError, OSError):
            _existing[module] = False
    return _existing[module]


def find_star_names(walk):
    """Returns the names that star imports bind."""
    names = set()
    for statement, alias, _, _ in walk.imports:
        if alias.name == "*":
            known = _public.get(statement.module) if statement.level == 0 else None
            if known is None:
                return ANYTHING
            names |= known.public
    return names


def check_imports(walk, known, given, report):
    """Reports missing modules, and missing attributes of well-known modules. `given` modules are assumed to exist."""
    reported, given = set(), {each.partition(".")[0] for each in given}
    for statement, alias, _, foreseen in sorted(walk.imports, key=lambda found: found[1].lineno):
        module = _imported_module(statement, alias)
        if module is None or statement.__class__ is ast.Import and module in reported:
            continue
        top = module.partition(".")[0]
        if top not in given and not exists(top):
            if not foreseen & IMPORT_ERROR and top not in reported:
                reported.add(top)
                texts = _unknown_module(top, statement, known) if len(reported) <= MAX_VIOLATIONS else ("", "")
                report.add("unknown_module", statement, *texts)
        elif statement.__class__ is ast.ImportFrom and alias.name != "*" and not has(module, alias.name):
            if not foreseen & (IMPORT_ERROR | ATTRIBUTE_ERROR):
                _unknown_attribute(report, alias, module, alias.name, f"from {module} import ")
    _check_attributes(walk, report)


def _imported_module(statement, alias):
    if statement.__class__ is ast.Import:
        return alias.name
    return statement.module if statement.level == 0 else None


def _unknown_module(module, statement, known):
    message = f"there is no module {shorten(module)!r} in the sandbox"
    names = [alias.name for alias in statement.names] if statement.__class__ is ast.ImportFrom else []
    own = [each for each in names if each in known.tools or each in known.helpers]
    if own or module in _INSTEAD_OF_TOOLS or module in known.tools:
        called = f": {join_names(own or known.tools)}" if own or known.tools else ""
        return message, f"Remove this import; tools and helpers need none{called}."
    if module in _POPULAR_PACKAGES:
        return message, f"{module} is not in the sandbox: use {_find_alternative(module)} or a tool."
    candidates = [each for each in sys.stdlib_module_names if not each.startswith("_")] + list(_POPULAR_PACKAGES)
    meant = find_nearest(module, candidates)
    if meant is not None and meant != module and exists(meant) and known.may_import(meant):
        return message, f"Did you mean import {meant}?"
    if meant is not None and meant != module and not exists(meant):
        return message, f"{meant} is not in the sandbox either: use {_find_alternative(meant)} or a tool."
    if known.tools:
        return message, f"Use Python's standard library, or a tool instead: {join_names(known.tools, 6)}."
    return message, "Use Python's standard library instead; there are no tools."


def _find_alternative(module):
    return "statistics, math" if module in ("numpy", "scipy", "pandas") else "Python's standard library"


def find_module(node, scope, walk):
    """Returns the module that an expression refers to; None if that is not certain."""
    modules, certain = find_modules(node, scope, walk)
    return next(iter(modules)) if certain and len(modules) == 1 else None


def find_modules(node, scope, walk, depth=0):
    """Returns (modules that an expression may refer to, True if it certainly refers to one of them)."""
    if node.__class__ is ast.Name:
        return _find_modules_of_name(node.id, scope, walk, depth)
    if node.__class__ is ast.Attribute and node.attr in _SUBMODULES:
        outer, certain = find_modules(node.value, scope, walk, depth)
        inner = {f"{each}.{node.attr}" for each in outer} & _public.keys()
        return inner, certain and len(inner) == len(outer)
    return _NO_MODULES


def _find_modules_of_name(name, scope, walk, depth):
    modules, certain = set(), True
    for binding in walk.resolve(name, scope) or ():
        if binding.kind == "import" or binding.kind == "from" and binding.value in _public:
            modules.add(binding.value)
        elif binding.kind == "assign" and depth < _MAX_ALIASES and binding.value.__class__ in (ast.Name, ast.Attribute):
            found, sure = find_modules(binding.value, binding.scope, walk, depth + 1)
            modules |= found
            certain = certain and sure
        else:
            certain = False
    return modules, certain and bool(modules)


def _check_attributes(walk, report):
    changed = {node.attr for node, _, _ in walk.attributes if node.ctx.__class__ is not ast.Load}
    for node, scope, foreseen in walk.attributes:
        if node.ctx.__class__ is not ast.Load or foreseen & ATTRIBUTE_ERROR or scope.unevaluated:
            continue
        if node.attr in changed or node.attr in walk.asked:
            continue
        module = find_module(node.value, scope, walk)
        if module is not None and not has(module, node.attr):
            _unknown_attribute(report, node, module, node.attr, f"{ast.unparse(node.value)}.")


def _unknown_attribute(report, node, module, attribute, written):
    message = f"the module {module} has no {shorten(attribute)!r}"
    known = _public[module]
    meant = find_nearest(attribute, sorted(known.public)) or _find_synonym(attribute, known.public)
    inner = getattr(sys.modules.get(module), module, None)
    if isinstance(inner, type) and hasattr(inner, attribute):
        hint = f"It belongs to the class: write {module}.{module}.{attribute}, or import the class: from {module} import {module}"
    elif meant is not None:
        hint = f"Did you mean {written}{meant}?"
    else:
        hint = f"It has {join_names(sorted(known.public), 12)}."
    report.add("unknown_attribute", node, message, hint)


_SYNONYMS = {"squareroot": "sqrt", "square_root": "sqrt", "power": "pow", "ceiling": "ceil", "stringify": "dumps",
         "parse": "loads", "encode": "dumps", "decode": "loads", "average": "mean", "avg": "mean", "std": "stdev",
         "absolute": "fabs", "ln": "log", "round": "floor"}  # fmt: skip


def _find_synonym(attribute, names):
    same = _SYNONYMS.get(attribute.lower())
    return same if same in names else None
