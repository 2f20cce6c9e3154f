"""The policy `strict`. It is quality control and feedback; the security boundary is the sandbox."""

import _string
import ast
import re

from . import modules as check_modules
from .modules import find_modules
from .report import join_names, shorten

FORBIDDEN_NAMES = frozenset(
    "eval exec compile __import__ open input breakpoint globals locals vars setattr delattr".split()
)
_INTERNALS = re.compile(
    r"_|(gi|cr|ag)_(frame|code|yieldfrom|await|origin|running|suspended)$|f_(back|builtins|code|globals|locals|trace\w*|lasti|lineno)$"
    r"|tb_(frame|lasti|lineno|next)$|co_\w+$|func_(globals|code|closure|defaults|dict)$|mro$"
)
# Methods that Python calls implicitly, and that give no access to its internals.
_PROTOCOL = frozenset(
    f"__{each}__"
    for each in (
        "init new post_init repr str format bytes bool int float complex index hash eq ne lt le gt ge len length_hint "
        "iter next reversed contains getitem setitem delitem missing call enter exit aenter aexit aiter anext await "
        "neg pos invert abs round trunc floor ceil copy deepcopy getattr class_getitem init_subclass"
    ).split()
) | frozenset(
    f"__{side}{each}__"
    for side in ("", "r", "i")
    for each in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
)
_BUILTIN_PATTERNS = frozenset(
    "bool bytearray bytes dict float frozenset int list set str tuple".split()
)
# Public names that evaluate text, or access attributes by name.
_REFUSED = {
    "typing": frozenset({"get_type_hints", "ForwardRef", "evaluate_forward_ref"}),
    "string": frozenset({"Formatter"}),
    "dataclasses": frozenset({"make_dataclass"}),
    "enum": frozenset({"EnumMeta", "EnumType"}),
}
_BY_TEXT = frozenset({"getattr", "attrgetter", "methodcaller"})
_ALTERNATIVES = {
    "eval": "Do it without eval: json.loads reads data, and a function or a lambda replaces code in a text.",
    "exec": "Write the code itself, or a function, in place of exec.",
    "compile": "Write the code itself in place of compile; use re.compile for patterns.",
    "open": "There are no files here: return data by emit_result(value), and read it from tools and inputs.",
    "input": "Nobody can answer: take the value from a tool, or write it into the script.",
    "__import__": "Write an import statement.",
    "setattr": "Write object.name = value, or keep the values in a dict.",
    "delattr": "Write del object.name, or keep the values in a dict.",
    "globals": "Keep the values in a dict of your own.",
    "locals": "Keep the values in a dict of your own.",
    "vars": "Keep the values in a dict, or use dataclasses.asdict.",
    "breakpoint": "Use print(...) or emit_log(message).",
}
_ALTERNATIVES_TO_ATTRIBUTES = {
    "__class__": "Write type(x) in place of x.__class__.",
    "__dict__": "Use dataclasses.asdict, or name the fields.",
    "__name__": "Write the name as text, or compare with type(x) is int.",
    "__doc__": "Write the text itself.",
    "__len__": "Write len(x).",
    "__iter__": "Write iter(x).",
    "__next__": "Write next(x).",
    "__str__": "Write str(x).",
    "__repr__": "Write repr(x).",
    "__getitem__": "Write x[key].",
    "__contains__": "Write key in x.",
}


def check_strict(walk, known, allow_modules, files, report):
    """Finds code that only the policy strict refuses. With `files`, the script may use files."""
    _Strict(walk, known, allow_modules, files, report).check()


class _Strict:
    def __init__(self, walk, known, allow_modules, files, report):
        self._walk = walk
        self._known = known
        self._allowed = check_modules.get_admitted(allow_modules, files)
        self._forbidden = FORBIDDEN_NAMES - {"open"} if files else FORBIDDEN_NAMES
        self._given = frozenset(allow_modules)
        self._report = report

    def check(self):
        """Checks names, imports, attributes, calls, then syntax."""
        for node, _, _ in self._walk.names:
            self._check_name(node.id, node)
        for name, node, _ in self._walk.bound:
            self._check_binding(name, node)
        for statement, alias, _, _ in self._walk.imports:
            self._check_import(statement, alias)
        for node, scope, _ in self._walk.attributes:
            self._check_attribute(node, scope)
        for node, scope, _ in self._walk.calls:
            self._check_call(node, scope)
        for node, scope in self._walk.others:
            self._check_syntax(node, scope)

    # ── names ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_name(self, name, node):
        if name in self._forbidden:
            self._report.add("forbidden_name", node, f"{name} is not allowed in a strict script", _ALTERNATIVES[name])
        elif name.startswith("__") and name != "__name__":
            hint = "Leave it out: scripts need none of Python's own names."
            self._report.add("forbidden_name", node, f"the name {shorten(name)} is not allowed in a strict script", hint)

    def _check_binding(self, name, node):
        if name in FORBIDDEN_NAMES:
            message = f"the name {name} is not allowed in a strict script"
            self._report.add("forbidden_name", node, message, "Choose another name.")
        if not name.startswith("__"):
            return
        is_method = node.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef) and node.parent.__class__ is ast.ClassDef
        if is_method and name in _PROTOCOL:
            return
        hint = "Choose a name that does not begin with two underscores."
        self._report.add("forbidden_name", node, f"the name {shorten(name)} is not allowed in a strict script", hint)

    # ── modules ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_import(self, statement, alias):
        if statement.__class__ is ast.Import:
            # `import a.b` binds a
            plain = alias.asname is None and "." in alias.name
            if not self._admits(alias.name) or plain and not self._admits(alias.name.partition(".")[0]):
                self._refuse_import(statement, alias.name)
            return
        if statement.level or not self._admits(statement.module):
            self._refuse_import(statement, "." * statement.level + (statement.module or ""))
        elif alias.name == "*":
            if statement.module in _REFUSED:
                self._refuse_attribute(alias, statement.module, "*", "Import the names that are needed.")
        else:
            self._check_public(alias, statement.module, alias.name)

    def _admits(self, module):
        if module in self._allowed:
            return True
        return any(module.startswith(f"{each}.") for each in self._given)

    def _refuse_import(self, statement, module):
        hint = "Use json, math, re, datetime, collections, itertools, statistics or a tool instead."
        top = module.partition(".")[0]
        if top in self._allowed and top != module:
            hint = f"Write import {top}, and use its public names."
        elif self._known.tools:
            hint = f"Use a tool ({join_names(self._known.tools, 4)}), or json, math, re, datetime, collections, itertools."
        self._report.add("forbidden_import", statement, f"{shorten(module)} may not be imported in a strict script", hint)

    def _check_public(self, node, module, attribute):
        """Reports a name of an admitted module that is not public."""
        known = check_modules.get_public_names(module)
        if module in self._given or known is None or attribute in ("abc",) and module == "collections":
            if attribute.startswith("_"):
                self._refuse_attribute(node, module, attribute, "Use a public name.")
            return
        if attribute in _REFUSED.get(module, ()):
            self._refuse_attribute(node, module, attribute, "It evaluates text; write the code itself.")
        elif attribute not in known.public and (attribute in known.all or attribute.startswith("_")):
            hint = f"{module} has {join_names(sorted(known.public), 8)}."
            self._refuse_attribute(node, module, attribute, hint)

    def _refuse_attribute(self, node, module, attribute, hint):
        message = f"{module}.{shorten(attribute)} is not allowed in a strict script"
        self._report.add("forbidden_attribute", node, message, hint)

    # ── attributes ──────────────────────────────────────────────────────────────────────────────────────────────

    def _check_attribute(self, node, scope):
        attribute = node.attr
        modules, _ = find_modules(node.value, scope, self._walk)
        if _INTERNALS.match(attribute):
            if not self._is_own(node, scope) and not _is_inherited_call(node):
                self._refuse_internal(node, attribute)
        else:
            for module in modules:
                self._check_public(node, module, attribute)
        if attribute in ("format", "format_map"):
            self._check_template(node, scope)

    def _is_own(self, node, scope):
        """True for `self._x` in a method: a private attribute of the script's own class."""
        if node.attr.startswith("__") or node.value.__class__ is not ast.Name or not node.attr.startswith("_"):
            return False
        while scope is not None and node.value.id not in scope.bindings:
            scope = scope.parent
        if scope is None or scope.kind != "function" or scope.parent.kind != "class":
            return False
        first = [*scope.node.args.posonlyargs, *scope.node.args.args][:1]
        return bool(first) and first[0].arg == node.value.id and len(scope.bindings[node.value.id]) == 1

    def _refuse_internal(self, node, attribute):
        hint = _ALTERNATIVES_TO_ATTRIBUTES.get(attribute, "Use public attributes and functions instead.")
        message = f"the attribute {shorten(attribute)} is not allowed in a strict script"
        self._report.add("forbidden_attribute", node, message, hint)

    # ── attribute access by text ────────────────────────────────────────────────────────────────────────────────

    def _check_template(self, node, scope):
        call = node.parent
        text = self._read_text(node.value, scope)
        if node.value.__class__ is ast.Name and node.value.id == "str" and call.__class__ is ast.Call and call.args:
            text = self._read_text(call.args[0], scope)
        if text is None:
            return
        fields = list(_find_fields(text))
        if node.attr == "format_map" and any("." in each or "[" in each for each in fields):
            self._refuse_template(node)
        elif any(_INTERNALS.match(part) for each in fields for part in _split_parts(each)):
            self._refuse_template(node)

    def _refuse_template(self, node):
        hint = "Write an f-string, or give format the values themselves: \"{0}\".format(value)."
        message = f"a template of {node.attr} reaches into a value"
        self._report.add("forbidden_attribute", node, message, hint)

    def _read_text(self, node, scope):
        """Returns the text of a constant expression, even through one assignment."""
        if node.__class__ is ast.Constant:
            return node.value if isinstance(node.value, str) else None
        if node.__class__ is ast.BinOp and node.op.__class__ is ast.Add:
            pieces = []
            while node.__class__ is ast.BinOp and node.op.__class__ is ast.Add:
                pieces.append(node.right)
                node = node.left
            texts = [getattr(each, "value", None) for each in [node, *reversed(pieces)]]
            return "".join(texts) if all(isinstance(each, str) for each in texts) else None
        if node.__class__ is ast.Name:
            binding = self._walk.only_binding(node.id, scope)
            value = getattr(binding, "value", None) if binding is not None and binding.kind == "assign" else None
            return value.value if value.__class__ is ast.Constant and isinstance(value.value, str) else None
        return None

    def _check_call(self, node, scope):
        func = node.func
        name = func.id if func.__class__ is ast.Name else getattr(func, "attr", None)
        if name in _BY_TEXT:
            for position, each in enumerate(node.args):
                if name == "getattr" and position != 1:
                    continue
                text = self._read_text(each, scope)
                if text is not None:
                    self._check_text(node, text, scope)
        if name == "type" and self._is_type(func, scope):
            if len(node.args) > 1 or node.keywords or any(each.__class__ is ast.Starred for each in node.args):
                hint = "Write a class statement, or use dataclasses or a dict."
                self._report.add("forbidden_syntax", node, "type() with three arguments is not allowed", hint)

    def _check_text(self, node, text, scope):
        for part in text.split("."):
            if _INTERNALS.match(part):
                message = f"getattr of {shorten(part)} is not allowed in a strict script"
                hint = f"Use a public name: {shorten(part)} is private."
                if part in _ALTERNATIVES_TO_ATTRIBUTES:
                    hint = _ALTERNATIVES_TO_ATTRIBUTES[part]
                self._report.add("forbidden_attribute", node, message, hint)
                return
        for module in find_modules(node.args[0], scope, self._walk)[0]:
            self._check_public(node, module, text)

    def _is_type(self, func, scope):
        return func.__class__ is ast.Name and self._known.is_builtin(func, scope)

    # ── syntax ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_syntax(self, node, scope):
        kind = node.__class__
        if kind is ast.ClassDef:
            self._check_class(node, scope)
        elif kind is ast.MatchClass:
            self._check_pattern(node, scope)
        elif kind.__name__ == "TryStar":
            hint = "Write except in place of except*."
            self._report.add("forbidden_syntax", node, "except* is not allowed in a strict script", hint)

    def _check_class(self, node, scope):
        for each in node.keywords:
            if each.arg in (None, "metaclass"):
                hint = "Leave it out, or use a decorator or a base class."
                self._report.add("forbidden_syntax", each, "metaclass= is not allowed in a strict script", hint)
        for base in node.bases:
            if base.__class__ is ast.Name and base.id == "type" and self._is_type(base, scope):
                hint = "Use a decorator or a base class."
                self._report.add("forbidden_syntax", base, "a metaclass is not allowed in a strict script", hint)

    def _check_pattern(self, node, scope):
        for attribute in node.kwd_attrs:
            if _INTERNALS.match(attribute):
                self._refuse_internal(node, attribute)
        cls = node.cls
        plain = cls.__class__ is ast.Name and cls.id in _BUILTIN_PATTERNS and self._known.is_builtin(cls, scope)
        if node.patterns and not plain:
            hint = "Name the attributes: case Point(x=x, y=y)."
            message = "a class pattern with positions is for Python's own types only"
            self._report.add("forbidden_syntax", node, message, hint)


def _is_inherited_call(node):
    """True for `super().__init__(…)`."""
    value = node.value
    return (
        node.attr in _PROTOCOL
        and node.parent.__class__ is ast.Call
        and node.parent.func is node
        and value.__class__ is ast.Call
        and not value.args
        and value.func.__class__ is ast.Name
        and value.func.id == "super"
    )


def _find_fields(text, depth=0):
    """Yields the fields of a format template, including those nested in format specifications."""
    if depth > 2:
        return
    try:
        for _, field, spec, _ in _string.formatter_parser(text):
            if field is not None:
                yield field
            if spec:
                yield from _find_fields(spec, depth + 1)
    except ValueError:
        return


def _split_parts(field):
    return [part for part in re.split(r"[.\[\]]", field)[1:] if part]
