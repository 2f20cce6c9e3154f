import sys
import unittest

from . import checking
from .checking_right import RIGHT, RIGHT_FROM_3_11, RIGHT_FROM_3_12
from .checking_right_tools import RIGHT_WITH_TOOLS


class RightTest(unittest.TestCase):
    maxDiff = None

    def test_nothing_is_found_where_the_script_may_be_right(self):
        later = [*RIGHT_FROM_3_11] if sys.version_info >= (3, 11) else []
        later += RIGHT_FROM_3_12 if sys.version_info >= (3, 12) else []
        for script in [*RIGHT, *RIGHT_WITH_TOOLS, *later]:
            with self.subTest(script=script):
                self.assertEqual(checking.check(script), [])


class PlaceTest(unittest.TestCase):
    def test_lines_end_where_the_parser_ends_them(self):
        for script, places in (
            ("a=1\rbad1\r\nbad2\nbad3", [(2, 0), (3, 0), (4, 0)]),
            ("x=1\n\x0cbad1", [(2, 1)]),
            ('x="\u2028"; bad1\nbad2', [(1, 7), (2, 0)]),
        ):
            with self.subTest(script=script):
                self.assertEqual([(each["line"], each["column"]) for each in checking.check(script)], places)

    def test_columns_count_characters(self):
        self.assertEqual([each["column"] for each in checking.check('x = "😀é"; bad1')], [10])

    def test_names_are_compared_as_python_reads_them(self):
        self.assertEqual(checking.check("ｎｕｍｂｅｒ = 1\nprint(number, ｓｅａｒｃｈ_orders('', 'open'))"), [])

    def test_a_coding_cookie_hides_nothing(self):
        self.assertEqual(checking.codes("# coding: utf-7\n# +AAo-bad1\nbad2"), [("unknown_name", 3)])

    def test_what_cannot_be_encoded_is_a_syntax_error_with_its_place(self):
        for script, place in (("x = 1\ny\0z", (2, 1)), ('\n\nx = "\ud800"', (3, 5))):
            with self.subTest(script=script):
                (found,) = checking.check(script)
                self.assertEqual((found["code"], found["line"], found["column"]), ("syntax_error", *place))


class ForeseenTest(unittest.TestCase):
    def test_a_refusal_that_the_script_is_prepared_for_is_no_mistake(self):
        for script in (
            "try:\n    search_orders('', 'open', limit='x')\nexcept ToolError:\n    pass",
            "import os\nif os.name == 'nt':\n    import msvcrt",
            "import platform\nif platform.system() == 'Windows':\n    import winreg",
            "if False:\n    import winreg",
            "emit_intermediate('half way')",
            "emit_intermediate(f'{1} of 2')",
        ):
            with self.subTest(script=script):
                self.assertEqual(checking.codes(script), [])

    def test_a_wrong_keyword_is_one_even_so(self):
        script = "try:\n    search_orders('', 'open', max=1)\nexcept ToolError:\n    pass"
        self.assertEqual(checking.codes(script), [("unknown_argument", 2)])


class HintTest(unittest.TestCase):
    maxDiff = None

    def test_hints_name_what_to_write(self):
        for script, expected in HINTS.items():
            with self.subTest(script=script):
                self.assertEqual([each["hint"] for each in checking.check(script)], [expected])


HINTS = {
    "serach_orders('', 'open')": "Did you mean search_orders(query, status, limit=10)?",
    "search_orders('', 'open', max_results=20)": "search_orders() takes query, status, limit. "
    "Write limit=20 in place of max_results=20.",
    "search_orders('', 'opne')": "Write status='open' in place of 'opne': it has to be one of 'open', 'paid', "
    "'shipped', 'late', 'cancelled'.",
    "search_orders('', 'open', limit='20')": "Write limit=20 in place of '20': it has to be int.",
    "search_orders('', 'open', limit=500)": "Write limit=100 in place of 500: it has to be at most 100.",
    "send_email('a', 'b', 'c', cc='d')": "Write cc=['d'] in place of 'd': it has to be list.",
    "send_email('a', 'b')": "Add body=... to the call: send_email(to, subject, body, cc=...).",
    "r = search_orders": "Call it: r = search_orders(query=..., status=...).",
    "describe_tool('serach_orders')": "Write describe_tool('search_orders').",
    "import numpy": "numpy is not in the sandbox: use statistics, math or a tool.",
    "import numpyy": "numpy is not in the sandbox either: use statistics, math or a tool.",
    "np.mean([1])": "Assign np before it is used, or remove it.",
    "print(Path('x'))": "Add the line: from pathlib import Path",
    "console.log(1)": "Write print(...) in place of console.log(...).",
    "import datetime\ndatetime.now()": "It belongs to the class: write datetime.datetime.now, or import the class: "
    "from datetime import datetime",
    "from math import squareroot": "Did you mean from math import sqrt?",
    "get_customer('C').nmae": "Did you mean .name? It has id, name, email, tier, balance.",
    "search_orders('', 'open')['id']": "search_orders('', 'open') is a list: take one element first, as in "
    "search_orders('', 'open')[0]['id'], or loop over it.",
    "count_orders().total": "count_orders() is an int: use it as it is, without .total.",
    "async def f():\n    return get_customer('C')['id']": "Write (await get_customer('C')) with the parentheses, then "
    "take the field.",
    "async def f():\n    c = get_customer('C')\n    return c['id']": "Write c = await get_customer('C').",
}


class FlowTest(unittest.TestCase):
    def _codes(self, script):
        return checking.codes(script, mode="plan")

    def test_a_result_is_asked_for_in_mode_plan_only(self):
        self.assertEqual(self._codes("print(1)\n\n"), [("no_result", 1)])
        self.assertEqual(checking.codes("print(1)"), [])

    def test_a_function_that_only_itself_calls_never_runs(self):
        self.assertEqual(self._codes("def f():\n    f()\n    emit_result(1)\n"), [("no_result", 1)])

    def test_functions_that_running_code_mentions_may_run(self):
        for script in (
            "def f(): emit_result(1)\ndef g(): f()\ng()",
            "def f(): emit_result(1)\njobs = [f]\njobs[0]()",
            "class A:\n    def __enter__(self): emit_result(1)\n    def __exit__(self, *a): pass\nwith A(): pass",
            "import atexit\n@atexit.register\ndef f(): emit_result(1)",
            "emit = emit_result\nemit(1)",
            "(lambda: emit_result(1))()",
        ):
            with self.subTest(script=script):
                self.assertEqual(self._codes(script), [])

    def test_helpers_are_checked_where_tool_files_bring_them_along_too(self):
        names = ["emit_result", "emit_log", "emit_intermediate", "own_tool"]
        found = checking.codes("emit_result(1, 2)\nown_tool(1)", mode="plan", names=names)
        self.assertEqual(found, [("too_many_arguments", 1)])

    def test_a_sandbox_tool_may_give_the_result(self):
        self.assertEqual(checking.codes("finish(3)", mode="plan", names=["finish"]), [])

    def test_a_branch_without_a_result_is_reported_where_it_goes_on_to_the_end(self):
        for script in (
            "if count_orders():\n    emit_result(1)\n",
            "if count_orders():\n    emit_result(1)\nelif list_regions():\n    pass\nelse:\n    emit_result(2)\n",
        ):
            with self.subTest(script=script):
                self.assertEqual(self._codes(script), [("no_result_on_path", 1)])

    def test_a_branch_that_may_not_be_taken_or_may_end_the_script_is_not_told(self):
        for script in (
            "n = count_orders()\nif n > 5:\n    emit_result(1)\nelif n <= 5:\n    emit_result(2)\n",
            "if count_orders():\n    emit_result(1)\nelse:\n    raise SystemExit\n",
            "import sys\ndef end():\n    sys.exit()\nif count_orders():\n    emit_result(1)\nelse:\n    end()\n",
            "n = count_orders()\nassert n\nif n:\n    emit_result(1)\n",
            "n = count_orders()\nif not n:\n    raise ValueError\nif n:\n    emit_result(1)\n",
            "if __name__ == '__main__':\n    emit_result(1)\n",
            "if True:\n    emit_result(1)\n",
            "if count_orders():\n    emit_result(1)\nelse:\n    print(1)\nraise SystemExit('none')\n",
        ):
            with self.subTest(script=script):
                self.assertEqual(self._codes(script), [])
