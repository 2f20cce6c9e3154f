import sys
import unittest

from sandglass_harness import text
from sandglass_harness.script import explain

from .. import forked


def describe(source):
    """(message, traceback) of the exception that a script raises."""
    explain.remember_source(source)
    try:
        exec(compile(source, explain.FILENAME, "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return explain.describe(error)
    raise AssertionError("it did not raise")


class DescribeTest(unittest.TestCase):
    maxDiff = None

    def test_lines_are_the_scripts_own_and_the_runtime_does_not_show(self):
        """HA-07: the traceback begins in the script and shows its source."""
        frames, _ = forked.run("import os\n\ndef f(n):\n    return 1 / n\n\nf(0)\n")
        shown = [line for line in frames[0]["traceback"].splitlines() if not set(line) <= set(" ^~")]
        want = [
            "Traceback (most recent call last):",
            '  File "<script>", line 6, in <module>',
            "    f(0)",
            '  File "<script>", line 4, in f',
            "    return 1 / n",
            "ZeroDivisionError: division by zero",
        ]
        self.assertEqual((frames[0]["message"], shown), ("ZeroDivisionError: division by zero", want))

    def test_a_syntax_error_shows_its_line_and_caret(self):
        frames, _ = forked.run("x = 1\ny = (2\n")
        frame = frames[0]
        self.assertEqual(frame["kind"], "syntax")
        self.assertIn('File "<script>", line 2', frame["traceback"])
        self.assertIn("^", frame["traceback"])
        self.assertNotIn("runtime.py", frame["traceback"])

    def test_causes_are_reported_too(self):
        message, text = describe("try:\n    {}['k']\nexcept KeyError as error:\n    raise ValueError('v') from error\n")
        self.assertEqual(message, "ValueError: v")
        self.assertIn("line 2, in <module>", text)
        self.assertIn("The above exception was the direct cause", text)
        self.assertIn("line 4, in <module>", text)

    def test_no_frame_of_the_harness_shows_however_deep_the_value_is(self):
        """HA-07: a value that cannot be sent is told at the call."""
        for source in (
            "value = object()\nfor _ in range(9): value = [value]\nemit_result(value)",
            "class Rows(list):\n    def __iter__(self): return iter([object()])\n\nemit_result(Rows('a'))",
            "import asyncio\nasync def main(): emit_result(object())\nasyncio.run(main())",
            "try:\n    emit_result({1, 2j})\nfinally:\n    pass",
        ):
            with self.subTest(source):
                frames, _ = forked.run(source)
                told = frames[0]["traceback"]
                self.assertIn('File "<script>"', told)
                self.assertNotIn("sandglass_harness/", told)
                self.assertNotIn("During handling", told)

    def test_code_of_the_script_that_the_harness_calls_shows(self):
        frames, _ = forked.run("class Row:\n    def __lt__(self, other): return 1 / 0\n\nemit_result({Row(), Row()})")
        shown = [line for line in frames[0]["traceback"].splitlines() if "File" in line]
        self.assertEqual(shown, ['  File "<script>", line 4, in <module>', '  File "<script>", line 2, in __lt__'])

    def test_frames_of_libraries_stay(self):
        frames, _ = forked.run("import asyncio\nasync def main(): return 1 / 0\nasyncio.run(main())")
        self.assertRegex(frames[0]["traceback"], r'asyncio/runners\.py", line')

    @unittest.skipIf(sys.version_info < (3, 11), "task groups came with Python 3.11")
    def test_members_of_a_group_show_no_frame_of_the_harness(self):
        source = "import asyncio\nasync def f(): emit_result(object())\nasync def main():\n    async with asyncio.TaskGroup() as group:\n"
        frames, _ = forked.run(source + "        group.create_task(f())\nasyncio.run(main())")
        self.assertIn("ConversionError", frames[0]["traceback"])
        self.assertNotIn("sandglass_harness/", frames[0]["traceback"])

    def test_a_class_of_the_script_has_its_own_name_and_one_of_a_module_the_whole(self):
        self.assertEqual(describe("class Mine(Exception): pass\nraise Mine('m')")[0], "Mine: m")
        self.assertEqual(describe("import json\njson.loads('{')")[0].partition(":")[0], "json.decoder.JSONDecodeError")
        self.assertEqual(describe("raise ValueError")[0], "ValueError")

    def test_endless_recursion_is_folded(self):
        message, text = describe("def f():\n    f()\nf()\n")
        self.assertIn("RecursionError", message)
        self.assertIn("[Previous line repeated", text)
        self.assertLess(len(text), 3000)

    def test_a_message_of_50_mb_is_bounded_in_the_middle(self):
        message, text = describe("raise ValueError('start' + 'x' * 50_000_000 + 'end')")
        self.assertTrue(message.startswith("ValueError: startxxx") and message.endswith("xxxend"), message[:40])
        self.assertIn("characters left out", message)
        self.assertLess(len(message), 10_000)
        self.assertLess(len(text), 70_000)
        self.assertTrue(text.startswith("Traceback (most recent call last):"), text[:60])

    def test_an_exception_whose_str_fails_is_still_told(self):
        message, text = describe("class E(Exception):\n    def __str__(self): return 1 / 0\nraise E")
        self.assertEqual(message, "E: <its __str__ raised ZeroDivisionError>")
        self.assertIn("line 3, in <module>", text)

    def test_an_exception_group_shows_its_members(self):
        import builtins

        if not hasattr(builtins, "ExceptionGroup"):
            self.skipTest("exception groups came with Python 3.11")
        message, text = describe("raise ExceptionGroup('both', [ValueError('a'), KeyError('b')])")
        self.assertEqual(message, "ExceptionGroup: both (2 sub-exceptions)")
        self.assertIn("ValueError: a", text)

    def test_notes_are_shown(self):
        if not hasattr(BaseException, "add_note"):
            self.skipTest("notes came with Python 3.11")
        self.assertIn("see the manual", describe("e = ValueError('v')\ne.add_note('see the manual')\nraise e")[1])


class CutTest(unittest.TestCase):
    def test_short_text_is_left_alone_and_long_text_loses_its_middle(self):
        self.assertEqual(text.cut("abc", 3), "abc")
        self.assertEqual(text.cut("abcdefgh", 4), "ab\n... 4 characters left out ...\ngh")
