"""Checks a script before it runs: what is certain to fail, and what a policy refuses. Never executes any of it."""

import gc

from . import check_modules
from .check_around import Around
from .check_flow import check_flow
from .check_forgotten import check_forgotten
from .check_names import BUILTINS, check_names, is_dynamic
from .check_report import Report, single
from .check_results import check_results
from .check_strict import check_strict
from .check_syntax import parse, split_lines
from .check_tools import Known, check_calls
from .check_types import Types
from .check_walk import Walk


def check(source, *, mode, policy, names, allow_modules, tools, preamble="", postamble=""):
    """The violations of a script, by line then column; none where nothing is wrong.

    `mode` is "plan" or "interactive", `policy` "standard" or "strict". `names` are inputs and sandbox tools that are
    there, `allow_modules` modules that are there and that strict admits beside its own, `tools` the host tools as the
    wire has them. `preamble` and `postamble` are what the caller has run around the script: they are not checked, but what
    the first one binds is there, and where one of them emits the result the script need not. Never raises: what it can
    not check has the one violation `checker_failed`, and where either is no Python that is the one violation.
    """
    check_modules.warm_up()
    check_modules.forget()
    collects = gc.isenabled()
    gc.disable()  # what is made stays until the end: going over it again and again is half of the time
    try:
        around = Around(preamble, postamble)
        if around.violations:
            return around.violations
        return _check(source, mode, policy, [*names, *around.names], allow_modules, tools, around)
    except Exception as error:  # what can not be checked is not admitted
        hint = "The fault is the checker's. Try a simpler form of the script."
        return single("checker_failed", 1, 0, f"the script could not be checked: {type(error).__name__}", hint)
    finally:
        if collects:
            gc.enable()


def _check(source, mode, policy, names, allow_modules, tools, around):
    lines = split_lines(source)
    tree, violations = parse(source, lines)
    if tree is None:
        return violations
    report = Report(lines)
    try:
        walk = Walk(tree)
        walk.stars = check_modules.star_names(walk)
        strict = policy == "strict"
        known = Known(
            walk,
            names=names,
            tools=tools,
            allows=lambda module: _allows(module, strict, allow_modules),
            builtins=BUILTINS,
        )
        if strict:
            check_strict(walk, known, allow_modules, report)
        dynamic = around.is_dynamic or is_dynamic(walk)
        if not dynamic:
            check_names(walk, known, report)
        check_modules.check_imports(walk, known, allow_modules, report)
        check_forgotten(walk, known, report, dynamic)
        check_calls(walk, known, report)
        check_results(walk, known, Types(walk, known), report)
        if mode == "plan" and not dynamic and not around.emits_result:
            check_flow(walk, known, report)
    except RecursionError:
        hint = "Split long chains of operators and nested brackets into several statements."
        return single("syntax_error", 1, 0, "the script is nested too deep to be checked", hint)
    return report.violations()


def _allows(module, strict, allow_modules):
    if not strict:
        return check_modules.is_there(module.partition(".")[0])
    return module in check_modules.ADMITTED or module in allow_modules


def warm_up():
    """Loads what `check` needs and goes through it once, so that processes forked from this one share it."""
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
