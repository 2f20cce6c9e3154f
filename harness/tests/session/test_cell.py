import linecache
import os
import signal
import sys
import unittest

from sandglass_harness.script import emit
from sandglass_harness.session import cell, cells

from .. import forked

REQUEST = {"secrets": {}, "inputs": {}, "timeout_text": "30", "announces_script": False, "cell": {"number": 1}}


def serve(*sources, before=lambda: None, **request):
    """Runs cells in a process of their own. Returns the types of their frames."""

    def go():
        emitter = forked.Collecting()
        emit.use(emitter)
        emit.install_clock()
        signal.signal(signal.SIGINT, emit.on_interrupt)
        served = cell.Cells(cells.Namespace({}), emitter, None)
        for source in sources:
            before()
            served.run({**REQUEST, **request, "script": source})
        return [frame["type"] for frame in emitter.frames]

    return forked.call(go)


class FramesTest(unittest.TestCase):
    def test_a_signal_between_two_cells_interrupts_nothing_and_the_next_cell_tells_of_it(self):
        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)

        self.assertEqual(serve("1", before=interrupt), ["interrupt_missed", "value", "display", "finished"])
        self.assertEqual(serve("x = 1"), ["finished"])

    def test_a_signal_during_a_cell_is_not_told_of_by_the_next_one(self):
        kinds = serve("import os, signal; os.kill(os.getpid(), signal.SIGINT)", "2")
        self.assertEqual(kinds, ["error", "finished", "value", "display", "finished"])


    def test_a_signal_while_another_is_reported_does_not_swallow_the_end_of_the_cell(self):
        for place, kinds in (("runtime.report_ending", ["error", "finished"]), ("emit.disarm", ["finished"])):
            with self.subTest(place=place):
                self.assertEqual(serve(_INTERRUPTED_TWICE % place, "2"), [*kinds, "value", "display", "finished"])


# A signal arrives twice at one step of the harness after the last line of the cell: at its end, and while that is being handled.
_INTERRUPTED_TWICE = """
import os, signal
from sandglass_harness.script import emit, runtime
room, name = "%s".split(".")
room, left = {"emit": emit, "runtime": runtime}[room], [1, 2]
step = getattr(room, name)
def interrupted(*args, **kwargs):
    if left:
        left.pop()
        emit.allow_interrupt(True)
        os.kill(os.getpid(), signal.SIGINT)
    return step(*args, **kwargs)
setattr(room, name, interrupted)
if room is runtime:
    1 / 0
"""


class ForkTest(unittest.TestCase):
    """Processes that a cell forks, and that come to its end."""

    def end_of_child(self, does, before="1", value="5"):
        """Returns (what the child wrote, its exit code, the types of all frames but those of `before`)."""

        def go():
            emitter = forked.Collecting()
            emit.use(emitter)
            emit.install_clock()
            served = cell.Cells(cells.Namespace({}), emitter, None)
            read, write = os.pipe()
            os.dup2(write, 1)
            os.dup2(write, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
            served.run({**REQUEST, "script": before})
            emitter.frames.clear()
            served.run({**REQUEST, "script": f"import os, sys\npid = os.fork()\nif pid == 0:\n    {does}\npid or {value}"})
            pid = emitter.frames[0]["data"]
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            for fd in (1, 2, write):
                os.close(fd)
            with open(read) as output:
                return output.read(), code, [frame["type"] for frame in emitter.frames]

        said, code, frames = forked.call(go)
        self.assertEqual(frames, ["value", "display", "finished"])
        return said, code

    def test_they_end_as_python_ends(self):
        place = 'Traceback (most recent call last):\n  File "<cell 1>", line 4, in <module>\n'
        timeout = "from sandglass_harness.script import emit\n    raise emit.ScriptTimeout"
        for does, said, code in (
            ("print('printed', end='')", "printed", 0),
            ("sys.exit()", "", 0),
            ("sys.exit(3)", "", 3),
            ("sys.exit(257)", "", 1),
            ("sys.exit('a reason')", "a reason\n", 1),
            ("raise ValueError('x')", f"{place}    raise ValueError('x')\nValueError: x\n", 1),
            ("raise KeyboardInterrupt", f"{place}    raise KeyboardInterrupt\nKeyboardInterrupt\n", 1),
            (timeout, f"{place.replace('4', '5')}    raise emit.ScriptTimeout\nScriptTimeout\n", 1),
            ("sys.excepthook = lambda kind, *_: print(kind.__name__); 1 / 0", "ZeroDivisionError\n", 1),
            ("sys.stderr = None; 1 / 0", "", 1),
            ("import threading; threading.Timer(0.01, print, ['late']).start()", "late\n", 0),
            ("os._exit(7)", "", 7),
        ):
            with self.subTest(does):
                self.assertEqual(self.end_of_child(does), (said, code))

    def test_they_run_no_exit_handlers_which_belong_to_the_session(self):
        before = "import atexit, tempfile; atexit.register(print, 'exit handler'); directory = tempfile.TemporaryDirectory()"
        self.assertEqual(self.end_of_child("print(os.path.exists(directory.name))", before), ("True\n", 0))

    def test_they_show_no_value(self):
        before = "class V:\n    def __repr__(self):\n        print('shown')\n        return 'v'"
        self.assertEqual(self.end_of_child("pass", before, "V()"), ("", 0))

    def test_they_show_no_figures_which_the_cell_shows(self):
        mine = "import os; from sandglass_harness.script import display; mine = os.getpid()"
        before = f"{mine}; display.flush_figures = lambda: mine == os.getpid() or print('shown')"
        for does in ("pass", "sys.exit()"):
            with self.subTest(does):
                self.assertEqual(self.end_of_child(does, before), ("", 0))

    def test_a_script_reports_what_its_own_process_does(self):
        for does, code in (("pass", 0), ("raise ValueError", 1), ("sys.exit(3)", 3)):
            script = f"import os, sys\nsys.stderr = open(os.devnull, 'w')\npid = os.fork()\nif pid == 0: {does}\nelse: emit_result(os.waitpid(pid, 0)[1] >> 8)"
            with self.subTest(does):
                frames, ending = forked.run(script)
                self.assertEqual((frames, ending), ([{"type": "final_result", "data": code}], ["done", 0]))


class TimeoutTest(unittest.TestCase):
    def test_a_timeout_of_a_pool_that_spawns_says_why_its_processes_find_no_function(self):
        def go():
            emitter = forked.Collecting()
            emit.use(emitter)
            emit.install_clock()
            served = cell.Cells(cells.Namespace({}), emitter, None)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            imported = "import multiprocessing.pool, multiprocessing.popen_spawn_posix\nfrom sandglass_harness.script import emit\n"
            served.run({**REQUEST, "script": imported + "def f(n): return n"})
            # The clock starts where it is to run out.
            spawned = "with multiprocessing.get_context('spawn').Pool(1) as pool: emit.arm(0.05); pool.map(f, [1])"
            own = "class Own(dict):\n    def get(self, *names): raise SystemExit\nemit.arm(0.05)\nexec('while True: pass', Own())"
            for script in (spawned, "emit.arm(0.05)\nwhile True: pass", own):
                served.run({**REQUEST, "script": script})
            return [frame["message"] for frame in emitter.frames if frame["type"] == "error"]

        told, *silent = forked.call(go)
        self.assertTrue(told.startswith("Script timed out after 30s; processes that start by spawn"), told)
        self.assertEqual(silent, ["Script timed out after 30s"] * 2)


class RehearsalTest(unittest.TestCase):
    def test_a_rehearsal_has_no_effect(self):
        def go():
            emitter = forked.Collecting()
            emit.use(emitter)
            emit.install_clock()
            namespace = cells.Namespace({})
            served = cell.Cells(namespace, emitter, None)
            served.run({**REQUEST, "script": "from __future__ import annotations\nx = 5\nx"})
            frames, flags = len(emitter.frames), namespace.flags
            served.rehearse()
            served.run({**REQUEST, "script": "_, __name__, x"})
            return frames, flags == namespace.flags, namespace.own_names(), [f.get("data") for f in emitter.frames[frames:-1]]

        value, shown = [5, "__main__", 5], {"text/plain": "(5, '__main__', 5)"}
        self.assertEqual(forked.call(go), [3, True, ["annotations", "x"], [value, shown]])

    def test_a_rehearsal_leaves_the_tools_of_the_last_cell_and_tells_nobody_of_what_the_cells_have_broken(self):
        def go():
            emitter = forked.Collecting()
            emit.use(emitter)
            namespace = cells.Namespace({})
            namespace.lend({"tool": 1})
            served = cell.Cells(namespace, emitter, None)
            served.rehearse()
            linecache.cache = None
            served.rehearse()
            return namespace.scope.get("tool"), emitter.frames

        self.assertEqual(forked.call(go), [1, []])
