"""Generates the functions that a script calls for host tools, from the signatures of a run."""

import sys
import types

from ..text import cut_head
from .door import TOOL_FILENAME, called_by_script, remove_harness
from .host_tools import ToolError

_MAX_SHOWN_NAME = 100


class _LeftOut:
    """The default of an optional parameter without a default in its schema."""

    def __repr__(self):
        return "..."


_LEFT_OUT = _LeftOut()
_CODE_GLOBALS = {
    "_remove_harness": remove_harness,
    "_BaseException": BaseException,
    "_Exception": Exception,
    "__builtins__": {},
    "__name__": "tools",
}


def make_functions(signatures, bridge, stubs=None):
    """Returns a dict from name to function. Each has the parameters, defaults, annotations and docstring of its tool.

    `stubs` are the stubs of Python tools by name, which only describe_tool needs.
    """
    codes = {}
    made = {signature["name"]: _make_function(signature, bridge, codes) for signature in signatures}
    made["describe_tool"] = _describe_tool({signature["name"]: signature for signature in signatures}, stubs or {})
    return made


def _make_function(signature, bridge, codes):
    params, name = signature["params"], signature["name"]
    shape = len(params), signature["more"]
    if shape not in codes:
        codes[shape] = _compile_code(*shape)
    names = [param["name"] for param in params]
    if signature["more"]:
        names.append(_unused_name(names))
    names.append(_unused_name(names, "error"))
    code = codes[shape].replace(co_name=name, co_varnames=tuple(names), **_qualified_name(name))
    wanted = [(p.get("key", p["name"]), p["nullable"] or p["required"]) for p in params]

    def collect(values, more):
        args = {}
        for (key, takes_none), value in zip(wanted, values):
            if value is not _LEFT_OUT and (value is not None or takes_none):
                args[key] = value
        for key, value in more.items():
            args.setdefault(key, value)
        return bridge.call(name, args)

    scope = {**_CODE_GLOBALS, "_collect": collect}
    function = types.FunctionType(code, scope, name)
    function.__defaults__ = tuple(_default_of(param) for param in params if not param["required"])
    function.__annotations__ = {**{p["name"]: p["type"] for p in params}, "return": signature["returns"]}
    function.__doc__ = signature["doc"]
    return function


def _unused_name(names, name="more"):
    """Returns `name`, with underscores appended until no parameter has that name."""
    while name in names:
        name += "_"
    return name


def _compile_code(count, more):
    """Compiles a function with `count` parameters, whose names are set later. Done once per shape, because it is slow.

    Its code removes the frames of the harness itself: called_by_script() would hide the parameters from Python's own messages.
    """
    names = [f"p{i}" for i in range(count)]
    head = ", ".join([*names, *(["**more"] if more else [])])
    values = "".join(f"{name}, " for name in names)
    text = f"""
def f({head}):
    try:
        return _collect(({values}), {"more" if more else "{}"})
    except _BaseException as error:
        try:
            _remove_harness(error)
        except _Exception:
            error.__traceback__ = None
        raise
"""
    return compile(text, TOOL_FILENAME, "exec").co_consts[0]


def _qualified_name(name):
    return {"co_qualname": name} if sys.version_info >= (3, 11) else {}


def _default_of(param):
    if "default" in param:
        return param["default"]
    return None if not param["nullable"] else _LEFT_OUT


def _describe_tool(signatures, stubs):
    @called_by_script
    def describe_tool(name):
        """The signature and the description of a tool, by its name."""
        name = getattr(name, "__name__", name)
        if name in stubs:
            return stubs[name]
        signature = signatures.get(name)
        if signature is None:
            shown = cut_head(str(name), _MAX_SHOWN_NAME)
            raise ToolError(f"no tool {shown!r}; available tools: {', '.join(sorted([*signatures, *stubs]))}", "unknown_tool")
        return format_stub(signature)

    return describe_tool


def format_stub(signature):
    """Returns the stub of a tool, as models read it."""
    params = [_parameter_text(param) for param in signature["params"]]
    if signature["more"]:
        params.append(f"**{_unused_name([param['name'] for param in signature['params']])}")
    params = ", ".join(params)
    head = f"def {signature['name']}({params}) -> {signature['returns']}:"
    doc = "\n".join(f"    {line}".rstrip() for line in signature["doc"].splitlines())
    types_text = f"{signature['types'].rstrip()}\n\n" if signature["types"] else ""
    return f'{types_text}{head}\n    """\n{doc}\n    """'


def _parameter_text(param):
    text = f"{param['name']}: {param['type']}"
    return text if param["required"] else f"{text} = {_default_of(param)!r}"
