"""Checks a script without executing it: finds code that is certain to fail, and code that a policy refuses."""

import gc

from . import modules as check_modules
from .wrapper_code import WrapperCode
from .flow import check_flow
from .forgotten import check_forgotten
from .named_tools import find_named_tools
from .names import BUILTINS, check_names, is_dynamic
from .report import Report, one_violation
from .results import check_results
from .strict import check_strict
from .syntax import is_script, parse, split_lines
from .tools import Known, check_calls
from .types import Types
from .walk import Walk


def check(source, *, mode, policy, names, allow_modules, tools, files=False, preamble="", postamble=""):
    """Returns the violations of a script, by line then column.

    `mode` is "plan" or "interactive", `policy` "standard", "strict", or "off", which finds nothing. `names` are inputs and
    functions of the tools directory. `allow_modules` are modules that exist and that strict admits in addition to its own. `tools`
    are the host tools in the wire format. With `files`, strict admits `open` and the modules for files. `preamble` and `postamble`
    are wrapper code of the caller. It is not checked, but the names that the preamble binds are known, and the script need not
    emit a result if the wrapper code does. Never raises. A script that cannot be checked has the single violation
    `checker_failed`; wrapper code that is not Python has the single violation `preamble_error`.
    """
    if policy == "off":
        return []
    check_modules.warm_up()
    check_modules.forget()
    collects = gc.isenabled()
    gc.disable()  # collections would take half of the time, and free almost no object
    try:
        wrapper = WrapperCode(preamble, postamble)
        if wrapper.violations:
            return wrapper.violations
        return _check(source, mode, policy, [*names, *wrapper.names], allow_modules, tools, files, wrapper)
    except Exception as error:  # a script that cannot be checked is not admitted
        hint = "The fault is the checker's. Try a simpler form of the script."
        return one_violation("checker_failed", 1, 0, f"the script could not be checked: {type(error).__name__}", hint)
    finally:
        if collects:
            gc.enable()


def _check(source, mode, policy, names, allow_modules, tools, files, wrapper):
    lines = split_lines(source)
    tree, violations = parse(source, lines)
    if tree is None:
        return violations
    report = Report(lines)
    try:
        walk = Walk(tree)
        walk.stars = check_modules.find_star_names(walk)
        strict = policy == "strict"
        admitted = check_modules.get_admitted(allow_modules, files)
        known = Known(
            walk,
            names=names,
            tools=tools,
            allows=lambda module: _allows(module, strict, admitted),
            builtins=BUILTINS,
        )
        if strict:
            check_strict(walk, known, allow_modules, files, report)
        dynamic = wrapper.is_dynamic or is_dynamic(walk)
        if not dynamic:
            check_names(walk, known, report)
        check_modules.check_imports(walk, known, allow_modules, report)
        check_forgotten(walk, known, report, dynamic)
        check_calls(walk, known, report)
        check_results(walk, known, Types(walk, known), report)
        if mode == "plan" and not dynamic and not wrapper.emits_result:
            check_flow(walk, known, report)
    except RecursionError:
        hint = "Split long chains of operators and nested brackets into several statements."
        return one_violation("syntax_error", 1, 0, "the script is nested too deep to be checked", hint)
    return report.violations()


def _allows(module, strict, admitted):
    if not strict:
        return check_modules.exists(module.partition(".")[0])
    return module in admitted


def warm_up():
    """Runs a check once, so that processes forked from this one share its modules and memory pages."""
    check_modules.warm_up()
    check(_USUAL, mode="plan", policy="strict", names=[], allow_modules=[], tools=[])


_USUAL = """
import json, math
from collections import Counter
from dataclasses import dataclass

@dataclass
class Point:
    x: float
    y: float = 0.0

    def length(self) -> float:
        return math.sqrt(self.x ** 2 + self.y ** 2)

def total(points, *, factor=1):
    found = {f"{n}": p.length() * factor for n, p in enumerate(points) if p.x}
    try:
        while not found:
            found["none"] = None
    except (KeyError, ValueError) as error:
        raise RuntimeError("no points") from error
    return sorted(found.values(), key=lambda value: -value)[:3]

points = [Point(float(n), n % 3) for n in range(10)]
first, *rest = total(points, factor=2)
if first > 1 and rest:
    emit_log(json.dumps({"first": first, "rest": len(rest)}))
for name, count in Counter("sandglass").items():
    print(name, count)
emit_result({"first": first, "rest": rest})
"""
