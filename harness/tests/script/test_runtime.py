import atexit
import functools
import linecache
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

from sandglass_harness.script import emit, explain, runtime, script_process, tools, zygote

from .. import forked

ARMING = "from sandglass_harness.script import emit; "  # a script then starts its clock where it is to run out
HARNESS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def result(data):
    return {"type": "final_result", "data": data}


class RuntimeTest(unittest.TestCase):
    """The script runtime in place, without a sandbox: what an engine without processes runs."""

    maxDiff = None

    def run_script(self, source, **options):
        frames, ending = forked.run(textwrap.dedent(source), **options)
        return frames, tuple(ending)

    def test_helpers_are_plain_globals(self):
        """HA-02"""
        frames, ending = self.run_script(
            """
            emit_log("m")
            emit_intermediate("half", 1)
            emit_result({"a": 1})
            """
        )
        want = [
            {"type": "log", "message": "m", "level": "info"},
            {"type": "intermediate", "label": "half", "data": 1},
            result({"a": 1}),
        ]
        self.assertEqual((frames, ending), (want, ("done", 0)))

    def test_base_globals_and_inputs_are_globals_too(self):
        frames, _ = self.run_script("emit_result([a, b])", base_globals={"a": 1, "b": 1}, inputs={"b": 2})
        self.assertEqual(frames, [result([1, 2])])

    def test_globals_are_fresh_in_each_run(self):
        """HA-05"""

        def twice():
            emitter = forked.Collecting()
            runtime.run_script("x = 1\nimport sys\nsys.modules['__main__'].y = 2", emitter)
            runtime.run_script("emit_result(['x' in globals(), 'y' in globals()])", emitter)
            return emitter.frames

        self.assertEqual(forked.call(twice), [result([False, False])])

    def test_an_input_can_not_take_the_place_of_the_name_of_the_module(self):
        frames, _ = self.run_script("emit_result(__name__)", inputs={"__name__": "other"})
        self.assertEqual(frames, [result("__main__")])

    def test_an_exception_is_reported_with_the_scripts_own_lines(self):
        """HA-07"""
        frames, ending = self.run_script("\n\n1/0\n")
        self.assertEqual(ending, ("raised", 1))
        self.assertEqual([f["kind"] for f in frames], ["exception"])
        self.assertEqual(frames[0]["message"], "ZeroDivisionError: division by zero")
        self.assertIn('File "<script>", line 3, in <module>', frames[0]["traceback"])
        self.assertNotIn("runtime.py", frames[0]["traceback"])

    def test_sys_exit_is_reported_and_is_not_a_crash(self):
        """HA-07"""
        rows = [
            ("sys.exit(3)", "SystemExit: 3 (the script called sys.exit)", 3),
            ("sys.exit()", "SystemExit (the script called sys.exit)", 0),
            ("sys.exit('no')", "SystemExit: no (the script called sys.exit)", 1),
            ("sys.exit(-1)", "SystemExit: -1 (the script called sys.exit)", 255),
            ("raise SystemExit(2)", "SystemExit: 2 (the script called sys.exit)", 2),
        ]
        for call, message, code in rows:
            with self.subTest(call):
                frames, ending = self.run_script(f"import sys\n{call}")
                self.assertEqual((frames[0]["message"], frames[0]["kind"], ending), (message, "exit", ("exited", code)))

    def test_a_syntax_error_is_reported_and_nothing_runs(self):
        frames, ending = self.run_script("emit_log('ran')\nif True\n  pass\n")
        self.assertEqual(([f["kind"] for f in frames], ending), (["syntax"], ("raised", 1)))
        self.assertIn('File "<script>", line 2', frames[0]["traceback"])

    def test_a_syntax_error_of_code_that_the_script_compiles_is_its_exception(self):
        frames, _ = self.run_script("eval('1 +')")
        self.assertEqual((frames[0]["kind"], "line 1, in <module>" in frames[0]["traceback"]), ("exception", True))

    def test_a_null_byte_in_the_script_is_an_error_and_no_crash(self):
        frames, ending = self.run_script("x = 1\0")
        self.assertEqual((len(frames), ending), (1, ("raised", 1)))

    def test_memory_that_is_not_there_has_a_kind_of_its_own(self):
        frames, _ = self.run_script("raise MemoryError")
        self.assertEqual(frames[0]["kind"], "memory")

    def test_keyboard_interrupt_and_other_base_exceptions_are_reported(self):
        frames, ending = self.run_script("class Odd(BaseException): pass\nraise Odd('o')")
        self.assertEqual((frames[0]["message"], ending), ("Odd: o", ("raised", 1)))

    def test_a_timeout_is_reported_with_the_place(self):
        """HA-06"""
        source = ARMING + "\ndef spin():\n    emit.arm(0.05)\n    while True: pass\nspin()\n"
        frames, ending = self.run_script(source, timeout=60, timeout_text="0.5")
        self.assertEqual((frames[0]["message"], frames[0]["kind"]), ("Script timed out after 0.5s", "timeout"))
        self.assertEqual(ending, ("timed-out", 1))
        self.assertIn('File "<script>", line 4, in spin', frames[0]["traceback"])
        self.assertNotIn("emit.py", frames[0]["traceback"])

    def test_a_timeout_in_a_sleep_is_reported(self):
        frames, _ = self.run_script(ARMING + "import time\nemit.arm(0.05); time.sleep(60)\n", timeout=60)
        self.assertIn("line 2, in <module>", frames[0]["traceback"])

    def test_except_exception_does_not_swallow_the_timeout(self):
        source = "while True:\n    try:\n        while True: pass\n    except Exception: pass\n"
        frames, ending = self.run_script(source, timeout=0.5)
        self.assertEqual((frames[0]["kind"], ending), ("timeout", ("timed-out", 1)))

    def test_threads_are_waited_for(self):
        frames, ending = self.run_script(
            """
            import threading, time
            def late():
                time.sleep(0.05)
                emit_result("late")
            threading.Thread(target=late).start()
            """
        )
        self.assertEqual((frames, ending), ([result("late")], ("done", 0)))

    def test_threads_that_threads_start_are_waited_for_too(self):
        frames, _ = self.run_script(
            """
            import threading, time
            def second():
                time.sleep(0.02)
                emit_result("second")
            def first():
                time.sleep(0.02)
                threading.Thread(target=second).start()
            threading.Thread(target=first).start()
            """,
            timeout=20,
        )
        self.assertEqual(frames, [result("second")])

    def test_the_clock_runs_while_threads_are_waited_for(self):
        frames, ending = self.run_script(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n", timeout=0.5
        )
        self.assertEqual((frames[0]["message"], ending), ("Script timed out after 0.5s", ("timed-out", 1)))

    def test_daemon_threads_are_not_waited_for(self):
        frames, ending = self.run_script(
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\nemit_result(1)",
            timeout=20,
        )
        self.assertEqual((frames, ending), ([result(1)], ("done", 0)))

    def test_exit_handlers_run_and_may_emit(self):
        frames, _ = self.run_script("import atexit\natexit.register(emit_result, 'bye')")
        self.assertEqual(frames, [result("bye")])

    ENDS = {
        "": (None, ("done", 0)),
        "1/0": ("ZeroDivisionError: division by zero", ("raised", 1)),
        "sys.exit(3)": ("SystemExit: 3 (the script called sys.exit)", ("exited", 3)),
        "raise KeyboardInterrupt": ("KeyboardInterrupt", ("raised", 1)),
        "raise MemoryError": ("MemoryError", ("raised", 1)),
    }

    def test_however_a_script_ends_its_threads_and_then_its_exit_handlers_do_as_in_cpython(self):
        """Reports the error, ends threads, then runs handlers, the last one first; a failing one does not stop the others."""
        setup = """
import atexit, sys, threading, time
from sandglass_harness.script import emit
sys.unraisablehook = lambda info: emit_log(str(info.exc_value))
def late():
    while fails and not emit.current.frames:  # until the error is sent
        time.sleep(0.001)
    emit_log("thread")
threading.Thread(target=late).start()
atexit.register(emit_log, "first registered")
atexit.register(lambda: {}["broken"])
atexit.register(emit_log, "last registered")
"""
        for end, (error, want) in self.ENDS.items():
            with self.subTest(end):
                frames, ending = self.run_script(setup + end, inputs={"fails": error is not None}, timeout=20)
                told = [error] if error else []
                told += ["thread", "last registered", "'broken'", "first registered"]
                self.assertEqual(([f["message"] for f in frames], ending), (told, want))

    def test_the_clock_runs_while_a_script_that_failed_waits_for_its_threads(self):
        setup = """
import sys, threading, time
from sandglass_harness.script import emit
def late():
    while fails and not emit.current.frames:  # until the error is sent
        time.sleep(0.001)
    emit.arm(0.05)
    time.sleep(60)
threading.Thread(target=late).start()
"""
        for end, (error, _) in self.ENDS.items():
            with self.subTest(end):
                options = {"inputs": {"fails": error is not None}, "timeout": 60, "timeout_text": "1"}
                frames, ending = self.run_script(setup + end, **options)
                told = [error] if error else []
                want = (told + ["Script timed out after 1s"], ("timed-out", 1))
                self.assertEqual(([f["message"] for f in frames], ending), want)

    def test_a_timeout_in_an_exit_handler_is_reported(self):
        for end, (error, _) in self.ENDS.items():
            with self.subTest(end):
                source = "import atexit, sys, time\nsys.unraisablehook = lambda _: None\n"
                source += ARMING + "atexit.register(lambda: (emit.arm(0.05), time.sleep(60)))\n"
                frames, ending = self.run_script(source + end, timeout=60, timeout_text="0.5")
                told = [error] if error else []
                want = (told + ["Script timed out after 0.5s"], ("timed-out", 1))
                self.assertEqual(([f["message"] for f in frames], ending), want)

    def test_after_a_timeout_no_exit_handler_runs(self):
        source = ARMING + "import atexit\natexit.register(emit_log, 'too late')\nemit.arm(0.05)\nwhile True: pass"
        frames, ending = self.run_script(source, timeout=60)
        self.assertEqual(([f["type"] for f in frames], ending), (["error"], ("timed-out", 1)))

    def test_a_script_that_ends_by_itself_after_its_timeout_runs_its_exit_handlers(self):
        source = """
            import atexit, time
            from sandglass_harness.script import emit
            atexit.register(emit_log, "handler")
            try:
                emit.arm(0.05)
                time.sleep(60)
            except BaseException as error:
                emit_log(type(error).__name__)
            """
        frames, ending = self.run_script(source, timeout=60)
        self.assertEqual(([f["message"] for f in frames], ending), (["ScriptTimeout", "handler"], ("done", 0)))

    def test_a_thread_pool_that_is_left_open_ends(self):
        frames, ending = self.run_script(
            """
            from concurrent.futures import ThreadPoolExecutor
            pool = ThreadPoolExecutor(2)
            pool.submit(emit_result, 1)
            """,
            timeout=20,
        )
        self.assertEqual((frames, ending), ([result(1)], ("done", 0)))

    def test_classes_of_the_script_work_with_dataclasses_pickle_and_typing(self):
        frames, _ = self.run_script(
            """
            import dataclasses, pickle, typing
            @dataclasses.dataclass
            class Point:
                x: "int"
                y: "typing.ClassVar[int]" = 1
            class Other:
                pass
            copy = pickle.loads(pickle.dumps(Point(3)))
            emit_result([copy == Point(3), type(pickle.loads(pickle.dumps(Other()))) is Other,
                         typing.get_type_hints(Point)["x"] is int, Point.__module__])
            """
        )
        self.assertEqual(frames, [result([True, True, True, "__main__"])])

    def test_future_imports_of_the_runtime_do_not_reach_the_script(self):
        frames, _ = self.run_script("def f(x: 1 + 1): pass\nemit_result(f.__annotations__['x'])")
        self.assertEqual(frames, [result(2)])

    def test_inspect_and_linecache_see_the_source(self):
        frames, _ = self.run_script("import inspect\ndef f(): return 7\nemit_result(inspect.getsource(f))\n")
        self.assertEqual(frames, [result("def f(): return 7\n")])

    def test_a_result_that_json_cannot_carry_is_an_error_with_its_path(self):
        """HA-13"""
        frames, _ = self.run_script("emit_result({'a': [1, {1j}]})")
        want = "ConversionError: $.a[1][0]: a value of type complex cannot be sent as JSON; convert it first"
        self.assertEqual(frames[0]["message"], want)

    def test_recursion_without_end_is_an_error_and_no_crash(self):
        frames, ending = self.run_script("def f(): f()\nf()")
        self.assertEqual((frames[0]["message"].partition(":")[0], ending), ("RecursionError", ("raised", 1)))

    def test_a_way_out_that_is_closed_does_not_raise(self):
        class Closed:
            def send(self, _frame):
                raise BrokenPipeError

        self.assertEqual(forked.call(lambda: runtime.run_script("1/0", Closed())), ["raised", 1])

    def test_what_is_loaded_in_the_run_itself_adds_to_the_globals_in_order(self):
        loaders = [("one", lambda scope: scope.update(a=1)), ("two", lambda scope: scope.update(b=scope["a"] + 1))]
        frames, ending = self.run_script("emit_result([a, b])", loaders=loaders)
        self.assertEqual((frames, ending), ([result([1, 2])], ("done", 0)))

    def test_what_cannot_be_loaded_in_the_run_is_reported_by_name_with_its_own_lines_and_no_script_runs(self):
        path = os.path.join(tempfile.mkdtemp(), "t.py")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        for line, name, kind in (
            ("open('/nowhere')", "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'", "setup"),
            ("raise SystemExit(3)", "SystemExit: 3", "setup"),
            ("raise MemoryError", "MemoryError", "memory"),
        ):
            with self.subTest(line):
                with open(path, "w") as file:
                    file.write(f"A = 1\n{line}\n")
                loaders = [("the tool file t.py", functools.partial(tools.load_file, path, loop=tools.ToolLoop()))]
                frames, ending = self.run_script("emit_log('ran')", loaders=loaders)
                want = [(f"the tool file t.py could not be loaded: {name}", kind)]
                self.assertEqual(([(f["message"], f["kind"]) for f in frames], ending), (want, ("raised", 1)))
                self.assertIn(f'Traceback (most recent call last):\n  File "{path}", line 2, in <module>\n', frames[0]["traceback"])

    SAYS = {"type": "setup_over"}

    def all_frames(self, source, **options):
        """Runs a script, and returns also what the broker keeps to itself."""

        class Verbose(forked.Collecting):
            def send(self, frame):
                self.frames.append(frame)

        def run():
            emitter = Verbose()
            loaders = [("one", lambda _scope: emitter.send({"type": "log", "message": "loader"}))]
            runtime.run_script(source, emitter, loaders=loaders, **options)
            return emitter.frames

        return forked.call(run)

    def test_the_set_up_is_over_after_what_the_host_gives_and_before_the_script(self):
        tool = {"name": "f", "source": "emit_log('tool')\ndef f(): pass", "stub": ""}
        options = {"tool_sources": [tool], "preamble": "emit_log('preamble')", "postamble": "emit_log('postamble')"}
        frames = self.all_frames("emit_log('script')", **options)
        told = [frame.get("message", frame["type"]) for frame in frames]
        self.assertEqual(told, ["loader", "tool", "preamble", "setup_over", "script", "postamble"])
        self.assertEqual([frame for frame in frames if "message" not in frame], [self.SAYS])
        self.assertEqual([f.get("kind") for f in self.all_frames("x = (")[1:]], [None, "syntax"])
        self.assertEqual(self.all_frames("emit_log('script')", announces_script=False)[1:], [{"type": "log", "message": "script", "level": "info"}])

    def test_the_set_up_is_never_over_when_it_failed(self):
        for options in ({"preamble": "1/0"}, {"tool_sources": [{"name": "f", "source": "1/0", "stub": ""}]}):
            with self.subTest(options):
                frames = self.all_frames("emit_log('ran')", **options)
                self.assertEqual([frame.get("kind", frame["type"]) for frame in frames], ["log", "setup"])

    def test_no_script_runs_when_the_broker_can_not_be_told_that_the_set_up_is_over(self):
        class Deaf(forked.Collecting):
            def send(self, frame):
                if frame == RuntimeTest.SAYS:
                    raise BrokenPipeError
                super().send(frame)

        def run():
            emitter = Deaf()
            return runtime.run_script("emit_log('ran')", emitter), emitter.frames

        ending, frames = forked.call(run)
        self.assertEqual(([frame["type"] for frame in frames], ending), (["error"], ["raised", 1]))

    def test_a_timeout_while_something_is_loaded_is_not_taken_for_its_failure(self):
        with self.assertRaisesRegex(AssertionError, "ScriptTimeout"):
            self.run_script("emit_log('ran')", loaders=[("one", lambda _scope: time.sleep(60))], timeout=0.5)

    def test_rehearsing_leaves_no_trace_in_the_next_script(self):
        def rehearsed():
            emitter = forked.Collecting()
            runtime.rehearse()
            runtime.run_script("emit_result('values' in globals())", emitter)
            return emitter.frames

        self.assertEqual(forked.call(rehearsed), [result(False)])

    def test_rehearsing_a_request_leaves_no_trace_and_reports_to_nobody(self):
        def rehearsed():
            read, script_process.FRAME_FD = os.pipe()
            os.set_blocking(read, False)
            atexit.register(print, "an exit handler")
            linecache.clearcache()  # an earlier test of this process may have left a script there
            before = emit.current, os.environ.copy(), atexit._ncallbacks(), set(sys.modules), dict(linecache.cache)
            emit.install_clock()
            script_process.rehearse()
            after = emit.current, os.environ.copy(), atexit._ncallbacks(), set(sys.modules), dict(linecache.cache)
            try:
                sent = os.read(read, 100).decode()
            except BlockingIOError:
                sent = None
            return [before == after, signal.getitimer(signal.ITIMER_REAL)[0], sent]

        self.assertEqual(forked.call(rehearsed), [True, 0.0, None])

    def test_warming_up_the_zygote_leaves_no_trace(self):
        def warmed():
            before = emit.current, os.environ.copy(), signal.getsignal(signal.SIGALRM), os.listdir("/proc/self/fd")
            main = threading.main_thread(), threading.active_count()
            zygote._warm_up()
            after = emit.current, os.environ.copy(), signal.getsignal(signal.SIGALRM), os.listdir("/proc/self/fd")
            unchanged = main == (threading.main_thread(), threading.active_count())
            return [before == after, unchanged, signal.getitimer(signal.ITIMER_REAL)[0], explain.FILENAME in linecache.cache]

        self.assertEqual(forked.call(warmed), [True, True, 0.0, False])

    def test_warming_up_the_zygote_keeps_the_threads_of_preloaded_modules(self):
        def warmed():
            go_on = threading.Event()
            thread = threading.Thread(target=go_on.wait)
            thread.start()
            zygote._warm_up()
            lives = thread.is_alive()
            go_on.set()
            thread.join()
            return lives

        self.assertEqual(forked.call(warmed), True)

    def test_rehearsing_a_request_runs_its_script(self):
        def rehearsed():
            heard = forked.Collecting()
            emit.SilentEmitter = lambda _fd: heard
            script_process.rehearse()
            return heard.frames

        self.assertEqual(forked.call(rehearsed), [result([0, 1, 2])])

    def test_it_needs_neither_fork_nor_a_signal(self):
        """An engine without processes runs it in place: no part of it imports what only Linux has at call time."""
        frames = forked.call(lambda: (runtime.run_script("emit_result(1)", e := forked.Collecting()), e.frames)[1])
        self.assertEqual(frames, [result(1)])
        self.assertTrue(issubclass(emit.ScriptTimeout, BaseException) and not issubclass(emit.ScriptTimeout, Exception))


class BrokerGuardTest(unittest.TestCase):
    def test_the_harness_refuses_to_start_where_it_is_not_pid_1(self):
        """Outside of a pid namespace, its kill(-1) would end everything on the machine."""
        code = f"import sys; sys.path.insert(0, {HARNESS!r}); from sandglass_harness import start; start.main()"
        done = subprocess.run([sys.executable, "-I", "-c", code, "{}"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("must be PID 1 of a pid namespace", done.stderr)
