"""Finds unbound names, and the names that were probably meant."""

import ast
import builtins
import sys

from .foreseen import NAME_ERROR
from .nearest import find_nearest
from .report import MAX_VIOLATIONS, shorten
from .scope import ANYTHING
from .tools import format_call

# Globals of a script that the runtime adds, in addition to builtins, helpers and tools.
MODULE_NAMES = frozenset({"__name__", "__builtins__", "__doc__", "__package__", "__loader__", "__spec__"})
_OF_SITE = {"copyright", "credits", "help", "license", "_"}  # only if Python starts with `site`
BUILTINS = (frozenset(dir(builtins)) - _OF_SITE) | {"exit", "quit"}
_IMPLICIT = MODULE_NAMES | {"__class__", "__qualname__", "__module__", "__annotations__", "__classdict__"}

_OTHER_LANGUAGES = {
    "true": "True", "false": "False", "null": "None", "nil": "None", "NULL": "None", "undefined": "None",
    "TRUE": "True", "FALSE": "False", "none": "None", "NaN": 'float("nan")', "Infinity": 'float("inf")',
    "nan": 'float("nan")', "inf": 'float("inf")', "console": "print(...)", "printf": "print(...)",
    "println": "print(...)", "echo": "print(...)", "puts": "print(...)", "length": "len(...)", "lenght": "len(...)",
    "parseInt": "int(...)", "parseFloat": "float(...)",
    "JSON": "import json and json.dumps or json.loads", "Math": "import math and its functions",
    "this": "self", "xrange": "range", "unicode": "str", "basestring": "str", "long": "int", "unichr": "chr",
    "raw_input": "an input of the script", "require": "import", "string": "str", "String": "str", "integer": "int",
    "boolean": "bool", "array": "list", "Array": "list", "Object": "dict", "Number": "float",
}  # fmt: skip
_NAMES_OF_MODULE = {
    "collections": "Counter defaultdict deque OrderedDict namedtuple ChainMap",
    "datetime": "datetime date timedelta timezone",
    "dataclasses": "dataclass field asdict astuple",
    "enum": "Enum IntEnum StrEnum auto",
    "pathlib": "Path PurePath",
    "typing": "Any Optional Union List Dict Tuple Set Callable Iterable Iterator Sequence Mapping Literal TypedDict "
    "NamedTuple TypeVar Generic Protocol cast",
    "functools": "partial reduce lru_cache wraps cache cached_property",
    "math": "sqrt ceil floor pi log log10 exp inf isclose",
    "statistics": "mean median stdev",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "copy": "deepcopy",
    "itertools": "chain product combinations permutations groupby islice accumulate zip_longest cycle",
    "concurrent.futures": "ThreadPoolExecutor ProcessPoolExecutor as_completed",
    "random": "randint choice shuffle sample",
    "time": "sleep",
    "contextlib": "contextmanager suppress redirect_stdout",
    "io": "StringIO BytesIO",
    "abc": "ABC abstractmethod",
    "uuid": "uuid4",
    "zoneinfo": "ZoneInfo",
    "textwrap": "dedent",
    "pprint": "pprint",
    "heapq": "heappush heappop nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort",
}  # fmt: skip
_MODULE_OF_NAME = {each: module for module, names in _NAMES_OF_MODULE.items() for each in names.split()}
_USUAL_ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "dt": "datetime", "ET": "xml.etree.ElementTree"}


def check_names(walk, known, report):
    """Checks all names. `known` has the predefined names."""
    reported = set()
    for node, scope, foreseen in sorted(walk.names, key=lambda use: (use[0].lineno, use[0].col_offset)):
        name = node.id
        if name in reported or scope.unevaluated or foreseen & NAME_ERROR:
            continue
        if name in BUILTINS or name in known.names or name in _IMPLICIT or walk.resolve(name, scope) is not None:
            continue
        reported.add(name)
        hint = _hint(node, scope, walk, known) if len(reported) <= MAX_VIOLATIONS else ""  # only for violations that are reported
        report.add("unknown_name", node, f"{shorten(name)!r} is not defined", hint)


def is_dynamic(walk):
    """True if the script may bind names dynamically, for example by globals() or exec()."""
    if walk.stars is ANYTHING:
        return True
    for node, scope, _ in walk.names:
        name = node.id
        if name in ("globals", "locals", "vars", "__builtins__", "__loader__") and walk.resolve(name, scope) is None:
            return True
        if name in ("exec", "eval") and walk.resolve(name, scope) is None and not _has_own_names(node):
            return True
    if any(node.attr in ("__dict__", "__globals__", "_getframe", "f_globals", "f_locals") for node, _, _ in walk.attributes):
        return True
    loaded = ("builtins", "__main__")
    if any(node.attr == "modules" and getattr(node.value, "id", "") == "sys" for node, _, _ in walk.attributes):
        return True
    return any(
        alias.name in loaded or getattr(statement, "module", None) in loaded for statement, alias, _, _ in walk.imports
    )


def _has_own_names(node):
    """True for exec(code, names), which binds names only in its own dictionary, and eval("a + b"), which binds none."""
    call = node.parent
    if call.__class__ is not ast.Call or call.func is not node or not call.args:
        return False
    if len(call.args) > 1 and not any(each.__class__ is ast.Starred for each in call.args):
        return True
    text = call.args[0]
    return node.id == "eval" and text.__class__ is ast.Constant and ":=" not in str(text.value)


def _hint(node, scope, walk, known):
    name = node.id
    used_as_module = node.parent.__class__ is ast.Attribute
    if name == "console" and used_as_module:
        return "Write print(...) in place of console.log(...)."
    home = _MODULE_OF_NAME.get(name)
    if home is not None and known.may_import(home) and not (used_as_module and _is_for_module(name, node.parent.attr)):
        return f"Add the line: from {home} import {name}"
    if name in _USUAL_ALIASES and known.may_import(_USUAL_ALIASES[name]):
        return f"Add the line: import {_USUAL_ALIASES[name]} as {name}"
    if name in sys.stdlib_module_names and used_as_module and known.may_import(name):
        return f"Add the line: import {name}"
    own = _visible(walk, scope)
    meant = find_nearest(name, [*known.tools, *known.helpers, *own, *known.opaque, *BUILTINS])
    if name in _OTHER_LANGUAGES and (meant is None or meant not in own and meant not in known.tools):
        return f"Write {_OTHER_LANGUAGES[name]} in Python."
    if meant in known.tools or meant in known.helpers:
        return f"Did you mean {format_call(known.signature(meant))}?"
    if meant is not None:
        return f"Did you mean {shorten(meant)}?"
    if name in sys.stdlib_module_names and known.may_import(name):
        return f"Add the line: import {name}"
    if used_as_module:
        module = find_nearest(name, [each for each in sys.stdlib_module_names if not each.startswith("_")])
        if module is not None and known.may_import(module):
            return f"Assign {shorten(name)} first, or add: import {module}, if you mean the module."
    if node.parent.__class__ is ast.Call and node.parent.func is node:
        return f"There is no function {shorten(name)}(): define it, or call {known.list_some()}."
    return f"Assign {shorten(name)} before it is used, or remove it."


def _is_for_module(name, attribute):
    """True if an attribute belongs to the module, as in `datetime.datetime`; `datetime.now` belongs to the class in it."""
    return name in sys.stdlib_module_names and attribute in ("datetime", "date", "timedelta", "timezone", "time")


def _visible(walk, scope):
    names = []
    while scope is not None:
        names += [each for each in scope.bindings if each != "*"]
        scope = scope.parent
    return names
