import unittest

from sandglass_harness.check.named_tools import find_named_tools

TOOLS = ["pay", "look_up", "mail"]


class NamedToolsTest(unittest.TestCase):
    def test_a_script_that_shows_its_calls(self):
        for script, found in (
            ("emit_result(pay(amount=look_up('pay')))", ["pay", "look_up"]),
            ("for f in (mail, pay): f()", ["pay", "mail"]),
            ("do = mail\ndef later():\n    return do(to='x')", ["mail"]),
            ("import json\njson.pay(1)", ["pay"]),
            ("import pandas\npandas.eval('@mail(1)')", ["mail"]),
            ("do = {'pay': 1}\nemit_result(do)", ["pay"]),
            ("# pay\nemit_result('a payment', 'eval', '*')", []),
            ("", []),
        ):
            with self.subTest(script=script):
                self.assertEqual(find_named_tools(script, TOOLS, allow_modules=['pandas'], files=True), found)

    def test_a_script_that_may_find_others_names_all(self):
        for script in (
            "globals()['p' + 'ay'](1)",
            "eval('pa' + 'y')(1)",
            "import __main__ as m\nm.__dict__['p' + 'ay'](1)",
            "import sys\nsys.modules['__main__'].x",
            "__import__('__main__')",
            "import pkgutil\npkgutil.resolve_name('__main__:p' + 'ay')()",
            "import cProfile\ncProfile.run('p' + 'ay()')",
            "import timeit\ntimeit.timeit('p' + 'ay()')",
            "from unittest import mock",
            "import typing\ntyping.get_type_hints(f)",
            "def f(): yield\nf().gi_frame.f_back",
            "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_back",
            "import os",
            "from importlib import import_module",
            "import inspect",
            "from os import *\nfrom unknown import *",
        ):
            with self.subTest(script=script):
                self.assertEqual(find_named_tools(script, TOOLS), TOOLS)

    def test_what_cannot_be_read_names_all(self):
        for script in ("pay(", "x = " + "(" * 500, "\0", "-" * 100_000 + "1", "x = 1" + ".a" * 100_000):
            with self.subTest(script=script[:20]):
                self.assertEqual(find_named_tools(script, TOOLS), TOOLS)

    def test_without_tools_there_is_none(self):
        self.assertEqual(find_named_tools("globals()", []), [])
