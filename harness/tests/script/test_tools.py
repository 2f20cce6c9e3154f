import asyncio
import os
import signal
import tempfile
import textwrap
import threading
import unittest

from sandglass_harness.script import descendants, emit, explain, preloading, tools

from .. import forked


class ToolLoopTest(unittest.TestCase):
    """HA-04"""

    def test_an_async_tool_is_called_like_a_plain_function(self):
        def script():
            scope = {}
            exec("import asyncio\nasync def t(x):\n    await asyncio.sleep(0)\n    return x + 1", scope)
            tools.wrap_async(scope, tools.ToolLoop())
            return scope["t"](1)

        self.assertEqual(forked.call(script), 2)

    def test_the_loops_thread_starts_at_first_use_and_only_once(self):
        def script():
            async def t():
                return threading.current_thread().name

            scope = {"t": t}
            loop = tools.ToolLoop()
            tools.wrap_async(scope, loop)
            before = threading.active_count()
            names = {scope["t"]() for _ in range(3)}
            return [before, threading.active_count(), sorted(names)]

        self.assertEqual(forked.call(script), [1, 2, ["sandglass-tools"]])

    def test_from_async_code_it_is_awaited_and_calls_run_at_the_same_time(self):
        def script():
            both = threading.Barrier(2)

            async def meet(x):
                await asyncio.get_running_loop().run_in_executor(None, both.wait, 10)
                return x

            scope = {"meet": meet}
            tools.wrap_async(scope, tools.ToolLoop())

            async def main():
                return await asyncio.gather(scope["meet"](1), scope["meet"](2))

            return asyncio.run(main())

        self.assertEqual(forked.call(script), [1, 2])

    def test_threads_call_it_at_the_same_time(self):
        def script():
            met = asyncio.Event

            async def meet(state={"count": 0}):  # noqa: B006 - kept by the function on purpose
                state.setdefault("event", met())
                state["count"] += 1
                if state["count"] == 3:
                    state["event"].set()
                await asyncio.wait_for(state["event"].wait(), 10)
                return True

            scope = {"meet": meet}
            tools.wrap_async(scope, tools.ToolLoop())
            results = []
            threads = [threading.Thread(target=lambda: results.append(scope["meet"]())) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return results

        self.assertEqual(forked.call(script), [True, True, True])

    def test_its_exception_arrives_at_the_caller(self):
        def script():
            async def t():
                raise LookupError("gone")

            scope = {"t": t}
            tools.wrap_async(scope, tools.ToolLoop())
            try:
                scope["t"]()
            except LookupError as error:
                return str(error)

        self.assertEqual(forked.call(script), "gone")

    def test_name_docstring_and_signature_stay(self):
        import inspect

        async def price(sku: str, n: int = 1) -> float:
            """Unit price."""

        scope = {"price": price, "plain": len}
        tools.wrap_async(scope, tools.ToolLoop())
        wrapped = scope["price"]
        self.assertEqual(
            (wrapped.__name__, wrapped.__doc__, str(inspect.signature(wrapped)), scope["plain"]),
            ("price", "Unit price.", "(sku: str, n: int = 1) -> float", len),
        )

    def test_a_function_is_async_if_inspect_says_so(self):
        import functools
        import inspect

        async def plain(): ...
        def sync(): ...
        async def generator():
            yield

        class Bound:
            async def method(self): ...
            async def __call__(self): ...

        def marked(): ...

        if hasattr(inspect, "markcoroutinefunction"):
            inspect.markcoroutinefunction(marked)
        partial = functools.partial(functools.partial(plain))
        values = [plain, sync, generator, Bound, Bound(), Bound().method, Bound.method, marked, partial, len, 3, lambda: plain()]
        scope = {str(number): value for number, value in enumerate(values)}
        tools.wrap_async(scope, tools.ToolLoop())
        wrapped = [scope[str(number)] is not value for number, value in enumerate(values)]
        self.assertEqual(wrapped, [inspect.iscoroutinefunction(value) for value in values])

    def test_one_async_tool_may_await_another(self):
        def script():
            scope = {}
            exec("async def inner(): return 1\nasync def outer(): return await inner() + 1", scope)
            tools.wrap_async(scope, tools.ToolLoop())
            return scope["outer"]()

        self.assertEqual(forked.call(script), 2)


class PreloadingTest(unittest.TestCase):
    """HA-03"""

    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(__import__("shutil").rmtree, self.directory)

    def write(self, **files):
        for name, source in files.items():
            with open(os.path.join(self.directory, name + ".py"), "w") as file:
                file.write(textwrap.dedent(source))

    def load(self, use="{}", preload=()):
        """Returns the report, and the value of an expression over the loaded globals."""

        def work():
            emitter = forked.Collecting()
            scope, loaders, added, told = preloading.load({"tools": self.directory, "preload": list(preload)})
            threads_ahead = threading.active_count()
            with descendants.adopt_orphans():  # the end of a run ends what it started
                for _, loader in loaders:
                    loader(scope)
                emit.use(emitter)
                used = eval(use, dict(scope))
            deferred = [name for name, _ in loaders]
            return {"told": told, "used": used, "deferred": deferred, "added": added, "threads": threads_ahead}

        return forked.call(work)

    def test_each_file_is_loaded_in_order_into_one_scope(self):
        self.write(b_second="def two(): return one() + 1", a_first="def one(): return 1", _private="HIDDEN = 3")
        got = self.load("[two(), HIDDEN, '__name__' in globals()]")
        loaded = ["_private.py", "a_first.py", "b_second.py"]
        self.assertEqual(got["told"]["tools"], {"loaded": loaded, "failed": []})
        self.assertEqual(got["used"][:2], [2, 3])

    def test_files_that_are_no_python_are_left_alone(self):
        self.write(a="A = 1")
        for name in ("notes.txt", ".hidden.py", "b.pyc"):
            with open(os.path.join(self.directory, name), "w") as file:
                file.write("raise SystemExit")
        self.assertEqual(self.load("A")["told"]["tools"], {"loaded": ["a.py"], "failed": []})

    def test_a_missing_directory_is_an_empty_one(self):
        self.assertEqual(tools.list_tool_files(os.path.join(self.directory, "missing")), [])

    def test_a_broken_file_is_reported_by_name_and_stops_no_other(self):
        self.write(
            a="def a(): return 1",
            b_raises="LEFT = 1\ndef half(): pass\nraise RuntimeError('on\\nimport')",
            c_syntax="def (",
            d_exits="import sys\nsys.exit(3)",
            e="def e(): return 5",
        )
        got = self.load("[a(), e(), 'LEFT' in globals(), 'half' in globals()]")
        failed = {entry["name"]: entry["message"] for entry in got["told"]["tools"]["failed"]}
        self.assertEqual(got["told"]["tools"]["loaded"], ["a.py", "e.py"])
        self.assertEqual(sorted(failed), ["b_raises.py", "c_syntax.py", "d_exits.py"])
        self.assertEqual((failed["b_raises.py"], failed["d_exits.py"]), ("RuntimeError: on import", "SystemExit: 3"))
        self.assertIn("SyntaxError", failed["c_syntax.py"])
        self.assertEqual(got["used"], [1, 5, False, False])

    def test_a_file_that_kills_its_process_is_reported_and_stops_no_other(self):
        self.write(
            a="A = 1",
            b_kills="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            c_leaves="import os\nos._exit(0)",
            d="D = 4",
        )
        got = self.load("[A, D]")
        died = "its process died while it was loaded"
        failed = [{"name": "b_kills.py", "message": died}, {"name": "c_leaves.py", "message": died}]
        self.assertEqual((got["told"]["tools"], got["used"]), ({"loaded": ["a.py", "d.py"], "failed": failed}, [1, 4]))

    def test_a_file_that_only_loads_once_is_reported_and_stops_no_other(self):
        marker = os.path.join(self.directory, "made")
        self.write(a_once=f"import os\nos.mkdir({marker!r})", b="B = 2")
        got = self.load("B")
        self.assertEqual([f["name"] for f in got["told"]["tools"]["failed"]], ["a_once.py"])
        self.assertIn("FileExistsError", got["told"]["tools"]["failed"][0]["message"])
        self.assertEqual((got["told"]["tools"]["loaded"], got["used"]), (["b.py"], 2))

    def test_a_file_that_starts_a_thread_is_loaded_in_each_run_instead(self):
        self.write(
            a_thread="""
            import threading
            EVENT = threading.Event()
            threading.Thread(target=EVENT.wait, daemon=True).start()
            def alive(): return threading.active_count()
            """,
            b="B = 2",
        )
        got = self.load("[B, alive() > 1]")
        self.assertEqual(got["told"]["tools"], {"loaded": ["b.py", "a_thread.py"], "failed": []})
        self.assertEqual(got["told"]["preload"]["deferred"], ["a_thread.py"])
        self.assertEqual((got["deferred"], got["threads"], got["used"]), (["the tool file a_thread.py"], 1, [2, True]))
        self.assertIn("alive", got["added"])

    DAEMON = """
        import os, signal
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open({marker!r}, "a") as file:
                    file.write(str(os.getpid()) + "\\n")
                signal.alarm(30)
                os.write(ready, b"x")
                signal.pause()
            os._exit(0)
    """

    def daemon(self, marker):
        """A source that leaves a process of another session, which holds every descriptor open."""
        source = textwrap.dedent(self.DAEMON).format(marker=os.path.join(self.directory, marker))
        return "import os\nwait, ready = os.pipe()\n" + source + "os.read(wait, 1)\n"

    def left_alive(self, marker):
        with open(os.path.join(self.directory, marker)) as file:
            pids = [int(line) for line in file]
        return pids, [pid for pid in pids if os.path.exists(f"/proc/{pid}")]

    def test_what_leaves_a_process_is_loaded_in_each_run_instead_and_the_process_ends(self):
        self.write(a_daemon=self.daemon("pids") + "A = 1\n", b="B = 2")
        got = self.load("[A, B]")
        self.assertEqual(got["told"]["tools"], {"loaded": ["b.py", "a_daemon.py"], "failed": []})
        self.assertEqual((got["told"]["preload"]["deferred"], got["used"]), (["a_daemon.py"], [1, 2]))
        pids, alive = self.left_alive("pids")
        self.assertEqual((len(pids), alive), (2, []))

    def test_a_process_that_changes_parents_is_not_laid_to_the_next_file(self):
        self.write(
            a_daemon="""
            import os, signal
            wait_go, go = os.pipe()
            wait, ready = os.pipe()
            between = os.fork()
            if between == 0:
                if os.fork() == 0:
                    signal.alarm(30)
                    os.write(ready, str(os.getpid()).encode())
                    signal.pause()
                os.read(wait_go, 1)
                os._exit(0)
            left = int(os.read(wait, 20))
            """,
            b="""
            B = 2
            if "left" in globals():
                os.write(go, b".")
                while open(f"/proc/{left}/stat").read().rpartition(")")[2].split()[1] == str(between):
                    pass
            """,
        )
        self.assertEqual(self.load("B")["told"]["preload"]["deferred"], ["a_daemon.py"])

    def test_a_file_that_kills_its_process_and_leaves_another_holds_nothing_up(self):
        for end in ("os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"):
            with self.subTest(end):
                self.write(a_daemon=self.daemon("pids") + end, b="B = 2")
                got = self.load("B")
                failed = [{"name": "a_daemon.py", "message": "its process died while it was loaded"}]
                self.assertEqual((got["told"]["tools"], got["used"]), ({"loaded": ["b.py"], "failed": failed}, 2))
                self.assertEqual(self.left_alive("pids")[1], [])

    def test_a_process_that_a_file_waits_for_is_no_reason(self):
        self.write(a="import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''], check=True)\nA = 1")
        got = self.load("A")
        self.assertEqual((got["told"]["tools"], got["deferred"]), ({"loaded": ["a.py"], "failed": []}, []))

    def test_a_file_that_forks_and_goes_on_in_both_is_reported_once(self):
        self.write(a="import os\nif os.fork() == 0: B = 1\nelse: os.wait()\nA = 1", c="C = 3")
        got = self.load("[A, C]")
        self.assertEqual((got["told"]["tools"], got["used"]), ({"loaded": ["a.py", "c.py"], "failed": []}, [1, 3]))

    def test_modules_are_preloaded_or_reported(self):
        got = self.load("True", preload=["colorsys", "no.such.module"])
        message = got["told"]["preload"]["failed"][0].pop("message")
        self.assertEqual(
            got["told"]["preload"], {"loaded": ["colorsys"], "failed": [{"name": "no.such.module"}], "deferred": []}
        )
        self.assertIn("ModuleNotFoundError", message)

    def test_a_tool_emits_for_the_run_that_calls_it_and_not_at_import(self):
        self.write(a="def note(): emit_log('from a tool')", b="emit_log('too early')")
        got = self.load("note()")
        self.assertEqual([f["name"] for f in got["told"]["tools"]["failed"]], ["b.py"])
        self.assertIn("while no script runs", got["told"]["tools"]["failed"][0]["message"])

    def test_an_async_tool_of_a_file_is_callable_from_the_next_file(self):
        self.write(a="async def t(x): return x + 1", b="def twice(x): return t(t(x))")
        self.assertEqual(self.load("twice(1)")["used"], 3)

    def test_a_message_of_a_broken_file_is_bounded(self):
        self.write(a="raise ValueError('x' * 1_000_000)")
        message = self.load("1")["told"]["tools"]["failed"][0]["message"]
        self.assertLessEqual(len(message), explain.MAX_BRIEF + len("\n... 1000000 characters left out ...\n"))

    def test_what_a_script_gets_has_no_dunder_names(self):
        self.assertEqual(sorted(tools.select_public(tools.fresh_scope())), ["emit_intermediate", "emit_log", "emit_result"])
