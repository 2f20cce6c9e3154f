import textwrap
import unittest

from sandglass_harness.broker import intake
from sandglass_harness.script import host_tools, tool_functions

from .. import forked


def source(name, text, stub="def f():"):
    return {"name": name, "source": textwrap.dedent(text), "stub": stub}


class ToolSourcesTest(unittest.TestCase):
    """HA-02 and HA-04 for tools that a run brings along as Python source."""

    maxDiff = None

    def frames(self, script, *sources, **options):
        frames, _ = forked.run(textwrap.dedent(script), tool_sources=sources, **options)
        return frames

    def result(self, script, *sources, **options):
        (frame,) = self.frames(script, *sources, **options)
        return frame.get("data", frame)

    def test_its_function_is_a_plain_global_and_nothing_else_of_it_is(self):
        tool = source("add", "import json as j\nSTEP = 2\ndef helper(n): return n + STEP\ndef add(n): return helper(n)")
        script = "emit_result([add(n=1), sorted({'j', 'STEP', 'helper', 'add'} & set(globals()))])"
        self.assertEqual(self.result(script, tool), [3, ["add"]])

    def test_each_is_in_a_module_of_its_own_where_pickle_finds_its_classes(self):
        one = source(
            "one",
            """
            import dataclasses, pickle
            @dataclasses.dataclass
            class Row:
                n: int
            def one(n):
                return pickle.loads(pickle.dumps(Row(n))).n
            """,
        )
        two = source("two", "def two(): return sorted(name for name in globals() if not name.startswith('__'))")
        helpers = ["emit_intermediate", "emit_log", "emit_result"]
        script = "emit_result([one(4), two(), one.__module__, two.__globals__ is globals()])"
        self.assertEqual(self.result(script, one, two), [4, [*helpers, "two"], "<tool one>", False])

    def test_it_does_not_see_tools_of_the_host_by_name(self):
        tool = source("probe", "def probe(call=None): return call('x') if call else 'search' in globals()")
        hosts = {"search": lambda text: text * 2}
        self.assertEqual(self.result("emit_result([probe(), probe(search)])", tool, tools=hosts), [False, "xx"])

    def test_an_async_function_is_called_from_plain_and_awaited_in_async_code_and_its_own_stay_async(self):
        tool = source(
            "fetch",
            """
            import asyncio
            async def inner(n):
                await asyncio.sleep(0)
                return n
            async def fetch(n):
                task = asyncio.create_task(inner(n))
                return await task + await inner(1)
            """,
        )
        script = """
            import asyncio
            async def main():
                return await asyncio.gather(fetch(2), fetch(3))
            emit_result([fetch(1), asyncio.run(main())])
        """
        self.assertEqual(self.result(script, tool), [2, [3, 4]])

    def test_one_that_cannot_be_loaded_is_reported_with_its_name_and_line_and_no_script_runs(self):
        for text, message in (
            ("x = 1\ndef f(): pass\nx = 1 / 0", "ZeroDivisionError: division by zero (<tool f>, line 3)"),
            ("def f(): pass\nx = = 2", "SyntaxError: invalid syntax (<tool f>, line 2)"),
            ("def f(): pass\nimport nowhere_to_find", "ModuleNotFoundError: No module named 'nowhere_to_find' (<tool f>, line 2)"),
            ("def f(): pass\ndel f", "LookupError: its source defines no function f"),
            ("f = 3\n", "LookupError: its source defines no function f"),
            ("def f(): pass\nraise SystemExit(3)", "SystemExit: 3 (<tool f>, line 2)"),
        ):
            with self.subTest(text):
                frames = self.frames("emit_log('ran')", source("f", text))
                told = [(frame["message"], frame["kind"]) for frame in frames]
                self.assertEqual(told, [(f"the Python tool f could not be loaded: {message}", "setup")])

    def test_an_error_in_a_call_shows_the_lines_of_script_and_tool(self):
        frames = self.frames("x = 1\nboom()", source("boom", "def boom():\n    raise KeyError('gone')"))
        self.assertEqual(frames[0]["message"], "KeyError: 'gone'")
        self.assertIn('  File "<script>", line 2, in <module>\n    boom()\n', frames[0]["traceback"])
        self.assertIn('  File "<tool boom>", line 2, in boom\n    raise KeyError(\'gone\')\n', frames[0]["traceback"])

    def test_a_name_that_a_function_of_the_tools_directory_has_is_refused_and_one_that_it_imported_is_not(self):
        scope = {"__name__": "tools"}
        exec("from json import dumps\ndef clean(): pass\nasync def fetch(): pass", scope)
        base = {name: scope[name] for name in ("dumps", "clean", "fetch")}
        text = "is both {} of this run and a function of the tools directory; rename one of them"
        for kind, options in (
            ("a tool of the host", {"tools": {"clean": len}}),
            ("an input", {"inputs": {"clean": 1}}),
            ("a Python tool", {"tool_sources": [source("clean", "def clean(): pass")]}),
        ):
            with self.subTest(kind):
                frames, ending = forked.run("emit_log('ran')", base_globals=dict(base), **options)
                want = {"type": "error", "message": "clean " + text.format(kind), "traceback": None, "kind": "setup"}
                self.assertEqual((frames, ending), ([want], ["raised", 1]))
        frames, _ = forked.run("emit_result(dumps())", base_globals=dict(base), tools={"dumps": lambda: 7})
        self.assertEqual(frames, [{"type": "final_result", "data": 7}])

    def test_describe_tool_returns_their_stubs_beside_those_of_host_tools(self):
        made = tool_functions.make_functions([], None, {"clean": "def clean(rows): ..."})
        self.assertEqual(made["describe_tool"]("clean"), "def clean(rows): ...")
        with self.assertRaisesRegex(host_tools.ToolError, "^no tool 'claen'; available tools: clean$"):
            made["describe_tool"]("claen")


class CapsTest(unittest.TestCase):
    def problem_of(self, *sources):
        request = {"execution_id": "e", "required_secrets": [], "secrets": {}, "tool_sources": list(sources)}
        return intake.Intake("/nowhere", None).problem_of(request)

    def test_sources_that_are_too_large_or_too_many_are_refused_by_name(self):
        most = intake.MAX_TOOL_SOURCE_BYTES
        self.assertIsNone(self.problem_of(source("f", "x" * most)))
        self.assertEqual(
            self.problem_of(source("f", "é" * (most // 2) + "x")),
            ("request", f"the source of the Python tool f has {most + 1} bytes; at most {most} are allowed"),
        )
        self.assertEqual(
            self.problem_of(*[source("f", "")] * 257),
            ("request", "the run brings 257 Python tools; at most 256 are allowed"),
        )
