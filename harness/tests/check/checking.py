"""Shared by the tests of the checker: the scripts of test/data/mistakes, and tools as the wire has them."""

import contextlib
import io
import json
import pathlib
import sys

from sandglass_harness.check import checker

REPOSITORY = pathlib.Path(__file__).parents[3]
_KEYWORDS = {"from"}
_PYTHON = {"string": "str", "integer": "int", "number": "float", "array": "list", "object": "dict", "boolean": "bool"}


def mistakes():
    return _read("mistakes")


def right():
    return _read("right")


def tools():
    return [wire_tool(tool) for tool in _read("tools")]


def _read(name):
    return json.loads((REPOSITORY / "test" / "data" / "mistakes" / f"{name}.json").read_text())


def wire_tool(tool):
    """As the host sends it: `CheckedTool` of src/protocol/host-frames.ts."""
    given = tool["input"]
    keys = sorted(given["properties"], key=lambda key: key not in given["required"])
    params = [_parameter(key, given["properties"][key], key in given["required"]) for key in keys]
    return {
        "name": tool["name"],
        "params": params,
        "more": given.get("additionalProperties", False) is not False,
        "returns": "Any",
        "doc": tool.get("description", ""),
        "types": "",
        "schemas": {param["name"]: given["properties"][key] for key, param in zip(keys, params)},
        "result": tool.get("output", True),
    }


def _parameter(key, schema, required):
    name = f"{key}_" if key in _KEYWORDS else key
    default = {"default": schema["default"]} if "default" in schema else {}
    kind = schema.get("type") if isinstance(schema, dict) else None
    nullable = kind is None or kind == "null" or isinstance(kind, list) and "null" in kind
    type_ = _PYTHON.get(kind, "Any") if isinstance(kind, str) else "Any"
    return {"name": name, "key": key, "type": type_, "required": required, "nullable": nullable, **default}


def check(script, policy="standard", mode="interactive", names=(), allow_modules=(), files=False, with_tools=None):
    given = tools() if with_tools is None else with_tools
    with _python_alone():
        return checker.check(
            script,
            mode=mode,
            policy=policy,
            names=list(names),
            allow_modules=list(allow_modules),
            tools=given,
            files=files,
        )


@contextlib.contextmanager
def _python_alone():
    """The module path of a sandbox without packages."""
    before = list(sys.path)
    sys.path[:] = [each for each in before if "-packages" not in each]
    try:
        yield
    finally:
        sys.path[:] = before


def codes(script, **options):
    """`[(code, line)]` of each violation."""
    return [(found["code"], found["line"]) for found in check(script, **options)]


@contextlib.contextmanager
def captured():
    """Captures output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output
