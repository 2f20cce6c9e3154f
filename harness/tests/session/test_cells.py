import inspect
import sys
import unittest

from sandglass_harness.script import explain
from sandglass_harness.session import cells, hints

from .. import forked


def session(*sources, base=None, show="value"):
    """Runs cells in a process of their own. Returns what each of them gives: the repr of its value, or what it raised."""

    def go():
        namespace = cells.Namespace(base or {})
        return [one(source, number, namespace) for number, source in enumerate(sources, 1)]

    def one(source, number, namespace):
        try:
            value = cells.run(source, number, namespace)
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next  # without the frame of this test
            return list(explain.describe(error)) if show == "traceback" else explain.describe(error)[0]
        return None if value is cells.NOTHING else repr(value)

    return forked.call(go)


class ValueTest(unittest.TestCase):
    def test_the_last_expression_of_a_cell_is_its_value(self):
        for source, want in [
            ("1 + 1", "2"),
            ("x = 5\nx", "5"),
            ("x = 5; x", "5"),
            ("x = 5", None),
            ("'text'", "'text'"),
            ("(x := 3)", "3"),
            ("None", None),
            ("print", repr(print)),
            ("", None),
            ("# only a comment", None),
            ("\n\n  # deeper\n", None),
            ("def f():\n    return 1", None),
            ("import functools\n@functools.lru_cache\ndef f(): pass", None),
            ("class C:\n    5", None),
            ("if True:\n    5", None),
            ("for _ in [1]: 5", None),
            ("'é' * 2 ; ", None),
            ("f'{1}'\\\n  ", "'1'"),
            ("...", "Ellipsis"),
        ]:
            with self.subTest(source):
                self.assertEqual(session(source), [want])

    def test_a_semicolon_silences_the_last_expression(self):
        for source, want in [
            ("5;", None),
            ("5 ; # why", None),
            ("(5\n);", None),
            ("'é;'", "'é;'"),
            ("'é';", None),
            ("5 # ;", "5"),
            ("5 \\\n ;", None),
            ("x = 1\r\n'ü';\r\n", None),
            ("x = 1\r'ü'\r", "'ü'"),
            ("x = '''\x0c\u2028'''\n5;", None),
            ("x = '''\x0c\u2028'''\n5", "5"),
            ("5\n;", "SyntaxError: invalid syntax (<cell 1>, line 2)"),
        ]:
            with self.subTest(source):
                self.assertEqual(session(source), [want])

    def test_globals_last_from_cell_to_cell(self):
        self.assertEqual(session("x = 1", "def f(): return x", "x = 7", "f()"), [None, None, None, "7"])

    def test_an_exception_leaves_what_ran_before_it(self):
        self.assertEqual(session("x = 1\ny = 1 / 0\nz = 3", "x", "z")[1:], ["1", "NameError: name 'z' is not defined"])

    def test_nothing_runs_of_a_cell_that_does_not_compile(self):
        self.assertEqual(session("x = 1\nreturn 5", "x")[1], "NameError: name 'x' is not defined")

    def test_the_underscore_is_the_last_value_until_a_cell_has_the_name(self):
        self.assertEqual(session("6 * 7", "None", "5;", "_ + 1"), ["42", None, None, "43"])
        self.assertEqual(session("_ = 'mine'", "5", "_"), [None, "5", "'mine'"])
        self.assertEqual(session("for _ in range(3): pass", "5", "_"), [None, "5", "2"])
        self.assertEqual(session("import gettext; gettext.install('x')", "5", "_('word')")[2], "'word'")


class NamespaceTest(unittest.TestCase):
    def test_classes_and_functions_of_cells_can_be_pickled_and_their_source_read(self):
        got = session(
            "import dataclasses, inspect, pickle\n@dataclasses.dataclass\nclass P:\n    x: int",
            "def f(n):\n    return n + 1",
            "pickle.loads(pickle.dumps(P(3))), pickle.loads(pickle.dumps(f))(1)",
            "inspect.getsource(f)",
        )
        self.assertEqual(got[2:], ["(P(x=3), 2)", repr("def f(n):\n    return n + 1")])

    def test_what_is_lent_to_a_cell_goes_with_it(self):
        def go():
            namespace = cells.Namespace({"emit_result": len})
            namespace.lend({"tool": max, "other": min})
            cells.run("kept = tool(1, 2)\nother = 5", 1, namespace)
            first = namespace.own_names()
            namespace.lend({"third": sum})
            return first, namespace.own_names(), "tool" in namespace.scope, "emit_result" in namespace.scope

        self.assertEqual(forked.call(go), [["other", "kept"], ["other", "kept"], False, True])

    def test_old_sources_are_forgotten_by_their_size(self):
        def go():
            namespace = cells.Namespace({})
            cells.MAX_SOURCES = 100
            for number in range(1, 9):
                cells.run(f"def f{number}(): return {number}  #{'x' * 10}", number, namespace)
            return [_has_source(namespace.scope[f"f{number}"]) for number in (1, 8)]

        self.assertEqual(forked.call(go), [False, True])

    def test_old_sources_are_forgotten_by_their_number(self):
        def go():
            namespace = cells.Namespace({})
            cells.MAX_CELLS = 3
            for number in range(1, 9):
                cells.run(f"def f{number}(): pass", number, namespace)
            return [_has_source(namespace.scope[f"f{number}"]) for number in (5, 6, 8)]

        self.assertEqual(forked.call(go), [False, True, True])


def _has_source(function):
    try:
        return bool(inspect.getsource(function))
    except OSError:
        return False


class FutureTest(unittest.TestCase):
    def test_flags_of_future_imports_last(self):
        got = session("from __future__ import annotations", "def f(x: Missing): pass\nf.__annotations__", base={})
        self.assertEqual(got, [None, "{'x': 'Missing'}"])
        self.assertEqual(session("from __future__ import annotations\ndef f(x: Missing): pass\nf.__annotations__"), ["{'x': 'Missing'}"])

    def test_flags_of_the_harness_and_of_a_cell_that_did_not_compile_do_not_last(self):
        self.assertEqual(session("1", "def f(x: Missing): pass")[1], "NameError: name 'Missing' is not defined" if sys.version_info < (3, 14) else None)
        self.assertIn("NameError", session("from __future__ import annotations\nreturn", "def f(x: Missing): pass\nf.__annotations__")[1])


class AwaitTest(unittest.TestCase):
    def test_await_at_the_top(self):
        self.assertEqual(session("import asyncio\nawait asyncio.sleep(0, 'slept')", "5"), ["'slept'", "5"])
        self.assertEqual(session("import asyncio\nx = [await asyncio.sleep(0, i) for i in range(2)]\nx"), ["[0, 1]"])

    def test_tasks_go_on_in_later_cells(self):
        got = session(
            "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 'done'\ntask = asyncio.create_task(f())",
            "await task",
        )
        self.assertEqual(got, [None, "'done'"])

    def test_asyncio_run_works_before_and_after(self):
        got = session(
            "import asyncio\nasync def f():\n    t = asyncio.create_task(asyncio.sleep(0, 1))\n    return await t\nasyncio.run(f())",
            "await f()",
            "asyncio.run(f())",
            "await f()",
        )
        self.assertEqual(got, ["1"] * 4)

    def test_context_variables_and_the_decimal_context_last(self):
        got = session(
            "import asyncio, contextvars, decimal\nv = contextvars.ContextVar('v', default=0)",
            "v.set(5); decimal.getcontext().prec = 4; await asyncio.sleep(0)",
            "v.get(), decimal.Decimal(1) / 3",
            "v.set(6)\nawait asyncio.sleep(0)\n1 / 0",
            "v.get()",
        )
        self.assertEqual((got[2], got[4]), ("(5, Decimal('0.3333'))", "6"))

    def test_no_frame_of_the_harness_or_of_asyncio_shows(self):
        [[message, text]] = session("import asyncio\nawait asyncio.sleep(0)\n1 / 0", show="traceback")
        self.assertEqual([line for line in text.splitlines() if "File" in line], ['  File "<cell 1>", line 3, in <module>'])
        self.assertEqual(message, "ZeroDivisionError: division by zero")

    def test_an_interrupted_cell_does_not_go_on_in_the_next(self):
        source = "import asyncio, os, signal, threading\nran = []\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        got = session(
            source,
            "asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGINT)\nawait asyncio.sleep(0.03)\nran.append(1)",
            "loop = asyncio.get_running_loop()\nthreading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()\nawait loop.create_future()",
            "await asyncio.sleep(0.05)\nran",
            show="traceback",
        )
        self.assertEqual([got[1][0], got[2][0], got[3]], ["KeyboardInterrupt", "KeyboardInterrupt", "[]"])
        self.assertIn('File "<cell 3>", line', got[2][1])


class TracebackTest(unittest.TestCase):
    def test_frames_are_those_of_cells(self):
        got = session("def f():\n    return 1 / 0", "f()", show="traceback")[1][1]
        shown = [line for line in got.splitlines() if not set(line) <= set(" ^~")]
        self.assertEqual(shown[1:], [
            '  File "<cell 2>", line 1, in <module>', "    f()", '  File "<cell 1>", line 2, in f', "    return 1 / 0",
            "ZeroDivisionError: division by zero",
        ])

    def test_a_syntax_error_shows_its_place(self):
        for source, line, text in [("x = 1\ny = (2\n", 2, "y = (2"), ("x = 1\nreturn 5", 2, "return 5"), ("x = 1\n'a' 5", 2, "'a' 5")]:
            with self.subTest(source):
                [[message, shown]] = session(source, show="traceback")
                self.assertIn(f'File "<cell 1>", line {line}', shown)
                self.assertIn(f"    {text}", shown)
                self.assertNotIn("sandglass_harness", shown)

    def test_the_place_of_a_timeout_is_told(self):
        def go():
            namespace = cells.Namespace({})
            try:
                cells.run("def f():\n    raise BaseException\nf()", 3, namespace)
            except BaseException as error:
                return explain.describe_place(error)

        self.assertIn('File "<cell 3>", line 3', forked.call(go))


class HintTest(unittest.TestCase):
    def test_what_belongs_to_ipython_is_told_after_a_syntax_error(self):
        for source, want in [
            ("!ls -l", "subprocess.run"),
            ("files = !ls", "subprocess.run"),
            ("x = 1\n!echo it's", "subprocess.run"),
            ("!pip install pandas", "dependencies: ['NAME']"),
            ("%pip install pandas", "dependencies: ['NAME']"),
            ("%matplotlib inline\nimport os", "figures are shown"),
            ("%%time\nx = 'open", "time.perf_counter"),
            ("%%bash\nfor i in *; do echo $i; done", "subprocess.run"),
            ("%frobnicate", "write it in Python"),
            ("len?", "print(NAME.__doc__)"),
            ("?len", "print(NAME.__doc__)"),
            ("len??", "inspect.getsource"),
        ]:
            with self.subTest(source):
                [message] = session(source)
                self.assertIn(want, message)
                self.assertTrue(message.startswith("SyntaxError: "), message)

    def test_plain_mistakes_and_plain_python_stay_as_they_are(self):
        for source in ("x = (", "'a' % 5 % ", "if x", "print 5"):
            with self.subTest(source):
                [message] = session(source)
                self.assertNotIn("session", message)
        self.assertEqual(session("x = ('%d'\n% 5)\nx"), ["'5'"])
        self.assertEqual(session("eval('!ls')"), ["SyntaxError: invalid syntax (<string>, line 1)"])

    def test_input_is_explained(self):
        def go():
            sys.stdin = open("/dev/null")
            try:
                cells.run("input()", 1, cells.Namespace({}))
            except EOFError as error:
                return str(error)

        self.assertEqual(forked.call(go), hints._INPUT)
        self.assertEqual(session("raise EOFError('mine')"), ["EOFError: mine"])

    def test_spawned_processes_are_explained(self):
        [_, message] = session(
            "import concurrent.futures, multiprocessing, os\nos.dup2(os.open('/dev/null', os.O_WRONLY), 2)\ndef f(n): return n",
            "with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool: pool.submit(f, 1).result()",
        )
        self.assertIn("get_context('fork')", message)


if __name__ == "__main__":
    unittest.main()
