"""The names that a script may call, and the check of its calls against their signatures."""

import ast

from .foreseen import TOOL_ERROR, TYPE_ERROR
from .nearest import find_nearest
from .report import cut, join_names, shorten
from .schema import find_exclusion, read_literal

MAX_ALIASES = 4
_LEFT_OUT = "..."


def _helper(name, *params):
    return {"name": name, "params": list(params), "more": False, "schemas": {}, "result": {"type": "null"}}


def _param(name, **rest):
    return {"name": name, "type": "Any", "required": not rest, "nullable": True, **rest}


HELPERS = {
    "emit_result": _helper("emit_result", _param("data", default=None)),
    "emit_intermediate": _helper("emit_intermediate", _param("label"), _param("data")),
    "emit_log": _helper("emit_log", _param("message"), _param("level", default="info")),
    "display": {**_helper("display"), "rest": True, "more": True},
}


class Known:
    """The predefined names of a script, and their signatures."""

    def __init__(self, walk, *, names, tools, allows, builtins):
        self._walk = walk
        # The value of an input is unknown; it hides a tool of the same name. Names of tool files include the helpers.
        self.opaque = frozenset(names) - HELPERS.keys()
        # Host tools and Python tools. Python tools may have parameters by position or keyword only (`kind`), accept
        # any number by position (`rest`), and be synchronous (`awaits`).
        self.tools = {tool["name"]: tool for tool in tools if tool["name"] not in self.opaque}
        self.helpers = {name: each for name, each in HELPERS.items() if name not in self.tools}
        if self.tools and "describe_tool" not in self.opaque:
            self.helpers["describe_tool"] = _describe_tool(self.tools)
        self.names = {*self.opaque, *self.tools, *self.helpers, "ToolError", "ConversionError"}
        self._allows = allows
        self._builtins = builtins

    def signature(self, name):
        """Returns the signature of a tool or helper."""
        return self.tools.get(name) or self.helpers.get(name)

    def may_import(self, module):
        """True if a hint may suggest importing the module."""
        return self._allows(module)

    def list_some(self):
        """Returns callable names for a hint."""
        return join_names(self.tools or self.helpers, 6)

    def is_builtin(self, node, scope):
        """True if a Name refers to the builtin of that name."""
        name = node.id
        return name in self._builtins and name not in self.names and self._walk.resolve(name, scope) is None

    def signature_of_name(self, node, scope):
        """Returns the signature of the tool or helper that a Name refers to directly, otherwise None."""
        if node.__class__ is not ast.Name:
            return None
        found = self.signature(node.id)
        return found if found is not None and self._walk.resolve(node.id, scope) is None else None

    def is_awaited(self, signature):
        """True if a call in async code returns an awaitable: for every host tool, and for async Python tools."""
        return signature["name"] in self.tools and signature.get("awaits", True)

    def find_signature(self, node, scope):
        """Returns the signature of a called expression, even through `find = search`."""
        for _ in range(MAX_ALIASES):
            if node.__class__ is not ast.Name:
                return None
            found = self.signature_of_name(node, scope)
            if found is not None:
                return found
            binding = self._walk.only_binding(node.id, scope)
            if binding is None or binding.kind != "assign" or binding.value is None or self.is_predefined(node.id):
                return None
            node, scope = binding.value, binding.scope
        return None

    def is_predefined(self, name):
        """True for a name that has another meaning until the script assigns it."""
        return name in self.names or name in self._builtins


def _describe_tool(tools):
    helper = _helper("describe_tool", _param("name"))
    return {**helper, "schemas": {"name": {"enum": list(tools)}}, "result": {"type": "string"}}


def format_call(signature, limit=6):
    """Returns `search(query, limit=10)`, for a hint."""
    params = [_format_parameter(param) for param in signature["params"]]
    if len(params) > limit:
        required = sum(param["required"] for param in signature["params"])
        params = [*params[: max(required, 2)][:limit], "..."]
    return cut(f"{signature['name']}({', '.join(params)})", 160)


def format_required(signature):
    """Returns `search(query=...)`, with only the required arguments, for a hint."""
    required = [param for param in signature["params"] if param["required"]]
    given = ", ".join("..." if param.get("kind") == "positional" else f"{param['name']}=..." for param in required)
    return cut(f"{signature['name']}({given})", 160)


def _format_parameter(param):
    if param["required"]:
        return f"{param['name']}=..." if param.get("kind") == "keyword" else param["name"]
    default = cut(repr(param["default"]), 30) if "default" in param else _LEFT_OUT
    return f"{param['name']}={default}"


def check_calls(walk, known, report):
    """Reports unknown, missing and excluded arguments of calls of tools and helpers."""
    for node, scope, foreseen in walk.calls:
        if foreseen & TYPE_ERROR or scope.unevaluated:
            continue
        signature = known.find_signature(node.func, scope)
        if signature is not None:
            _Call(node, scope, signature, walk, known, report).check(foreseen & TOOL_ERROR != 0)


def _is_text(node):
    return node.__class__ is ast.JoinedStr or (node.__class__ is ast.Constant and isinstance(node.value, str))


class _Call:
    def __init__(self, node, scope, signature, walk, known, report):
        self._node = node
        self._scope = scope
        self._signature = signature
        self._known = known
        self._report = report
        self._name = signature["name"]
        self._params = {param["name"]: param for param in signature["params"]}

    def check(self, handles_tool_error):
        """Checks the parameter of each argument, and its value unless the script handles ToolError."""
        positional = self._node.args
        spread = any(each.__class__ is ast.Starred for each in positional)
        keywords = [each for each in self._node.keywords if each.arg is not None]
        order = [each for each, param in self._params.items() if param.get("kind") != "keyword"]
        plain = [each for each in positional if each.__class__ is not ast.Starred]
        if len(plain) > len(order) and not self._signature.get("rest"):
            self._report_too_many(plain, order)
        given = {}
        for param, value in zip(order, positional):
            if value.__class__ is ast.Starred:
                break
            given[param] = value
        replaced = set()
        named = {each.arg for each in keywords}
        for each in keywords:
            by_name = each.arg in self._params and self._params[each.arg].get("kind") != "positional"
            if by_name and each.arg in given:
                self._report_twice(each)
            elif by_name:
                given[each.arg] = each.value
            elif not self._signature["more"]:
                replaced.add(self._report_unknown(each, {*given, *named, *replaced}, spread))
        if not spread and len(keywords) == len(self._node.keywords):
            missing = [p for p in self._params if self._params[p]["required"] and p not in {*given, *replaced}]
            if not (self._name == "emit_intermediate" and missing == ["data"] and _is_text(given["label"])):
                self._report_missing(missing)  # a label alone reports progress; a value alone is an error
        for param, value in () if handles_tool_error else given.items():
            self._check_fit(self._params[param], value)

    def _report_too_many(self, plain, order):
        takes = "no arguments" if not order else f"at most {len(order)} argument{'s' * (len(order) > 1)}"
        takes += " by position" * (len(order) < len(self._params))
        message = f"{self._name}() takes {takes}, not {len(plain)}"
        hint = f"Write {format_call(self._signature)}."
        if self._name == "emit_result":
            hint = "Give one value, as in emit_result({'name': value}), or label others by emit_intermediate(label, data)."
        self._report.add("too_many_arguments", plain[len(order)], message, hint)

    def _report_twice(self, argument):
        message = f"{self._name}() gets {argument.arg} twice: by position and by name"
        hint = f"Leave one out: {argument.arg} is argument {list(self._params).index(argument.arg) + 1} already."
        self._report.add("too_many_arguments", argument, message, hint)

    def _report_unknown(self, argument, taken, spread):
        """Reports the argument. Returns the parameter that was probably meant."""
        by_name = [each for each, param in self._params.items() if param.get("kind") != "positional"]
        free = [each for each in by_name if each not in taken]
        meant = find_nearest(argument.arg, free) or self._likely(argument, free, spread)
        takes = f"{self._name}() takes {join_names(self._params)}." if self._params else f"{self._name}() takes no arguments."
        hint = f"{takes} Leave {shorten(argument.arg)} out."
        if argument.arg in self._params:  # positional-only
            hint = f"It is given by position: {format_call(self._signature)}."
            message = f"{self._name}() takes {shorten(argument.arg)} by position only"
            self._report.add("unknown_argument", argument, message, hint)
            return argument.arg
        if meant is not None:
            value = self._source(argument.value)
            hint = f"{takes} Write {meant}={value} in place of {shorten(argument.arg)}={value}."
        elif argument.arg.rstrip("_") in self._params or f"{argument.arg}_" in self._params:
            hint = takes
        self._report.add("unknown_argument", argument, f"{self._name}() has no parameter {shorten(argument.arg)!r}", hint)
        return meant

    def _likely(self, argument, free, spread):
        """Returns the only required parameter that is left, or the only parameter whose schema admits the value."""
        required = [each for each in free if self._params[each]["required"]]
        fitting = [each for each in required or free if self._exclusion(self._params[each], argument.value) is None]
        parts = set(argument.arg.lower().split("_"))
        alike = [each for each in free if parts & set(each.lower().split("_"))]
        if len(alike) == 1:
            return alike[0]
        return fitting[0] if len(fitting) == 1 and not spread else None

    def _report_missing(self, names):
        if not names:
            return
        message = f"{self._name}() needs {join_names(names)}"
        if self._name == "emit_intermediate":
            hint = "Write emit_intermediate(label, data): a short text, then the value."
        else:
            added = (each if self._params[each].get("kind") == "positional" else f"{each}=..." for each in names[:8])
            hint = f"Add {', '.join(added)} to the call: {format_call(self._signature)}."
        self._report.add("missing_argument", self._node, message, hint)

    def _exclusion(self, param, value):
        known = self._known
        given = read_literal(value, lambda name: known.is_builtin(name, self._scope))
        if given is not None and given.type == "null" and not param["required"]:
            return None  # None omits the argument
        if given is not None and given.type == "null" and param["nullable"]:
            return None
        return find_exclusion(self._signature["schemas"].get(param["name"]), given)

    def _check_fit(self, param, value):
        found = self._exclusion(param, value)
        if found is None:
            return
        shown = self._source(found.literal.node)
        place = f"{param['name']} of {self._name}()"
        if found.literal.node is not value:
            place = f"a part of {place}"
        message = f"{place} has to be {found.expected}, not {shown}"
        hint = f"Give {found.expected} in place of {shown}."
        if found.write is not None and found.literal.node is value:
            hint = f"Write {param['name']}={found.write} in place of {shown}: it has to be {found.expected}."
        elif found.write is not None:
            hint = f"Write {found.write} in place of {shown}: it has to be {found.expected}."
        if self._name == "describe_tool":
            hint = f"Tools are {join_names(self._known.tools, 20)}." if found.write is None else f"Write describe_tool({found.write})."
        self._report.add("argument_type", found.literal.node, message, hint)

    @staticmethod
    def _source(node):
        try:
            return cut(ast.unparse(node), 40)
        except (RecursionError, ValueError):
            return "the value"
