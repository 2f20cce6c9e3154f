"""Wrapper code: a caller's preamble and postamble."""

import textwrap
import unittest

from sandglass_harness.check import checker, wrapper_code
from sandglass_harness.script import explain

from . import forked
from .check import checking
from .broker.run_case import RunTestCase, line

PREAMBLE = textwrap.dedent(
    """
    import math as m

    FACTOR = 2

    def twice(x):
        return x * FACTOR
    """
)


def kinds(frames):
    return [frame["type"] for frame in frames]


class AroundRunTest(unittest.TestCase):
    """OR-12"""

    maxDiff = None

    def test_what_the_preamble_binds_are_globals_of_the_script(self):
        frames, _ = forked.run("emit_result([twice(4), m.floor(2.5)])", preamble=PREAMBLE)
        self.assertEqual(frames, [{"type": "final_result", "data": [8, 2]}])

    def test_the_preamble_sees_inputs_and_helpers(self):
        frames, _ = forked.run("emit_result(doubled)", preamble="doubled = n * 2\nemit_log('ready')", inputs={"n": 4})
        self.assertEqual(kinds(frames), ["log", "final_result"])
        self.assertEqual(frames[1]["data"], 8)

    def test_the_script_keeps_its_own_line_numbers(self):
        frames, ending = forked.run("x = 1\n1/0\n", preamble=PREAMBLE, postamble="emit_log('behind')")
        self.assertEqual((kinds(frames), ending), (["error"], ["raised", 1]))
        self.assertIn('File "<script>", line 2, in <module>', frames[0]["traceback"])
        self.assertNotIn("preamble", frames[0]["traceback"])

    def test_a_syntax_error_of_the_script_is_still_one(self):
        frames, _ = forked.run("x = (", preamble=PREAMBLE)
        self.assertEqual([(f["type"], f["kind"]) for f in frames], [("error", "syntax")])
        self.assertIn('File "<script>", line 1', frames[0]["traceback"])

    def test_only_a_preamble_that_fails_is_no_failure_of_the_script(self):
        for wrapper, want in (
            ({"preamble": "{}['a']"}, ("the preamble failed: KeyError: 'a'", "setup")),
            ({"preamble": "raise SystemExit(3)"}, ("the preamble failed: SystemExit: 3", "setup")),
            ({"preamble": "raise MemoryError"}, ("MemoryError", "memory")),
            ({"preamble": "def f(): return {}['a']", "source": "f()"}, ("KeyError: 'a'", "exception")),
            ({"postamble": "{}['a']"}, ("KeyError: 'a'", "exception")),
        ):
            with self.subTest(wrapper):
                source = wrapper.pop("source", "emit_log('ran')")
                frames, _ = forked.run(source, **wrapper)
                self.assertEqual((frames[-1]["message"], frames[-1]["kind"]), want)

    def test_an_error_in_either_names_it_with_its_line(self):
        rows = [
            ({"preamble": "x = 1\n1/0"}, '"<preamble>", line 2', "    1/0\n"),
            ({"postamble": "\n1/0"}, '"<postamble>", line 2', "    1/0\n"),
            ({"preamble": "x = ("}, '"<preamble>", line 1', "    x = ("),
        ]
        for wrapper, place, text in rows:
            with self.subTest(wrapper):
                frames, ending = forked.run("emit_log('ran')", **wrapper)
                self.assertEqual((frames[-1]["type"], ending), ("error", ["raised", 1]))
                self.assertIn(place, frames[-1]["traceback"])
                self.assertIn(text, frames[-1]["traceback"])
                self.assertNotIn("runtime.py", frames[-1]["traceback"])
                self.assertEqual("log" in kinds(frames), "postamble" in wrapper)

    def test_a_traceback_names_each_text_that_it_goes_through(self):
        frames, _ = forked.run("\ndivide(0)", preamble="def divide(x):\n    return 1 / x")
        told = frames[0]["traceback"]
        self.assertLess(told.index('File "<script>", line 2'), told.index('File "<preamble>", line 2, in divide'))
        frames, _ = forked.run("def divide(x):\n    return 1 / x", postamble="\n\ndivide(0)")
        told = frames[0]["traceback"]
        self.assertLess(told.index('File "<postamble>", line 3'), told.index('File "<script>", line 2, in divide'))

    def test_a_timeout_in_the_preamble_reports_the_place(self):
        preamble = "from sandglass_harness.script import emit\nemit.arm(0.05)\nwhile True:\n    pass"
        frames, ending = forked.run("", preamble=preamble, timeout=60)
        self.assertEqual((frames[0]["kind"], ending[0]), ("timeout", "timed-out"))
        self.assertIn('File "<preamble>", line', frames[0]["traceback"])

    def test_the_postamble_runs_behind_a_script_that_got_through_and_only_then(self):
        for script, want in (
            ("x = 1", ["final_result"]),
            ("x = 1\n1/0", ["error"]),
            ("x = 1\nimport sys\nsys.exit()", ["error"]),
            ("x = (", ["error"]),
        ):
            with self.subTest(script):
                frames, _ = forked.run(script, postamble="emit_result(x)")
                self.assertEqual(kinds(frames), want)

    def test_preamble_and_postamble_have_file_names_in_tracebacks(self):
        self.assertEqual((explain.PREAMBLE, explain.POSTAMBLE), ("<preamble>", "<postamble>"))


class AroundCheckTest(unittest.TestCase):
    """OR-12"""

    def check(self, script, mode="plan", policy="strict", **wrapper):
        return checker.check(script, mode=mode, policy=policy, names=[], allow_modules=[], tools=checking.tools(), **wrapper)

    def codes(self, script, **options):
        return [(each["code"], each["line"]) for each in self.check(script, **options)]

    def test_names_that_the_preamble_binds_are_known(self):
        script = "emit_result([twice(4), m.floor(2.5), FACTOR])"
        self.assertEqual(self.codes(script), [("unknown_name", 1)] * 3)
        self.assertEqual(self.codes(script, preamble=PREAMBLE), [])

    def test_preamble_and_postamble_are_not_checked_themselves(self):
        wrapper = {"preamble": "import os\nsecret = open('/x')", "postamble": "eval('1')\nunknown"}
        self.assertEqual(self.codes("emit_result(1)", **wrapper), [])
        self.assertEqual(self.codes("emit_result(os.getpid())", **wrapper), [])

    def test_what_is_wrong_in_the_script_has_the_line_of_the_script(self):
        self.assertEqual(self.codes("\nemit_resutl(1)\nemit_result(1)", preamble=PREAMBLE), [("unknown_name", 2)])

    def test_a_postamble_that_emits_the_result_is_enough_in_plan_mode(self):
        self.assertEqual(self.codes("answer = 1"), [("no_result", 1)])
        self.assertEqual(self.codes("answer = 1", postamble="emit_result(answer)"), [])
        self.assertEqual(self.codes("answer = 1", postamble="emit_log(str(answer))"), [("no_result", 1)])

    def test_a_helper_of_the_preamble_that_emits_the_result_is_enough_in_plan_mode(self):
        preamble = "def done(answer):\n    emit_result(answer)"
        self.assertEqual(self.codes("done(1)", preamble=preamble), [])

    def test_a_text_that_is_not_python_is_reported_and_the_script_is_not_blamed(self):
        rows = [
            ({"preamble": "x = 1\ny = ("}, "the preamble is not valid Python: line 2: '(' was never closed"),
            ({"preamble": "return 1"}, "the preamble is not valid Python: line 1: 'return' outside function"),
            ({"postamble": "\n\nx ="}, "the postamble is not valid Python: line 3: invalid syntax"),
            ({"preamble": "x = 1\na\0b"}, "the preamble is not valid Python: line 2: "),
            ({"preamble": "(" * 5000}, "the preamble is not valid Python: line 1: "),
        ]
        for wrapper, message in rows:
            with self.subTest(message):
                for script in ("emit_result(1)", "nope", "x = ("):
                    found = self.check(script, **wrapper)
                    self.assertEqual([(v["code"], v["line"], v["column"]) for v in found], [("preamble_error", 1, 0)])
                    self.assertEqual(found[0]["message"][: len(message)], message)
                    self.assertIn("not the script", found[0]["hint"])

    def test_names_of_a_star_import_in_the_preamble_are_known_where_the_module_is(self):
        preamble = "from math import *\nfrom collections import *"
        self.assertEqual(self.codes("emit_result([sqrt(4), Counter()])", preamble=preamble), [])
        self.assertEqual(self.codes("emit_result(sqrtt(4))", preamble=preamble), [("unknown_name", 1)])
        self.assertEqual(self.codes("from math import *\nemit_result(sqrtt(4))"), [("unknown_name", 2)])

    def test_where_the_preamble_does_not_show_what_it_binds_no_name_is_unknown(self):
        for preamble in (
            "from some_module import *",
            "if True:\n    from .near import *",
            "globals().update(a=1)",
            "exec('a = 1')",
            "import builtins\nbuiltins.a = 1",
            "import sys\nsys.modules['__main__'].a = 1",
        ):
            with self.subTest(preamble):
                self.assertEqual(self.codes("emit_result(a)", preamble=preamble), [])
                self.assertEqual(self.codes("emit_result(get_price())", preamble=preamble), [("missing_argument", 1)])

    def test_what_a_function_of_the_preamble_binds_as_global_is_known(self):
        preamble = "def setup():\n    global ready\n    ready = 1\nsetup()"
        self.assertEqual(self.codes("emit_result(ready)", preamble=preamble), [])

    def test_what_a_text_binds_at_its_top_level(self):
        text = textwrap.dedent(
            """
            import os.path, json as j
            from math import sqrt as root
            a, (b, *c) = 1, (2, 3)
            d: int = 1
            if a:
                e = 1
            for f in ():
                pass
            with open("x") as g:
                pass
            try:
                pass
            except ValueError as h:
                pass
            def i(hidden): local = 1
            class J: inner = 1
            [k for k in ()]
            (l := 1)
            match a:
                case {"x": n, **o}:
                    pass
                case [*p] as q:
                    pass
            """
        )
        names = "os j root a b c d e f g i J l n o p q".split()
        self.assertEqual(sorted(wrapper_code.WrapperCode(text, "").names), sorted(names))


class CallLineTest(RunTestCase):
    """OR-06"""

    CALL = {"type": "tool_call", "id": "1", "name": "search", "args": {}}

    def test_the_line_of_a_call_goes_on_where_it_is_one(self):
        for given, want in ((7, {"line": 7}), (None, {}), (0, {}), (-1, {}), (True, {}), ("7", {}), (1.5, {})):
            with self.subTest(given=given):
                frames = self.take(line(**self.CALL, line=given), tools=[{}])
                sent = {"type": "tool_call", "execution_id": "e1", "id": "1", "name": "search", **want, "args": {}}
                self.assertEqual(frames, [sent])
