import array
import fcntl
import json
import os
import signal
import termios
import threading
import time
import unittest

from sandglass_harness.script import emit

from .. import forked


def read_all(fd):
    data = b""
    while piece := os.read(fd, 1 << 20):
        data += piece
    os.close(fd)
    return data


def held_in(fd):
    """Bytes that wait in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def wait_until_held(fd, count):
    """Until a pipe holds so many bytes: its writer is then in the middle of a longer line."""
    give_up_at = time.monotonic() + 60
    while (held := held_in(fd)) < count:
        if time.monotonic() > give_up_at:
            raise AssertionError(f"the pipe holds {held} bytes after a minute, not {count}")
        time.sleep(0.001)


def path_of(fd):
    """The path of an open descriptor, or None."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        return None


def in_a_process(function, *args):
    """Starts `function` in a process of its own; its exit code is 0 when it did not raise."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(*args)
            code = 0
        finally:
            os._exit(code)
    return pid


class HelpersTest(unittest.TestCase):
    def setUp(self):
        self.emitter = forked.Collecting()
        emit.use(self.emitter)
        self.addCleanup(emit.use, emit._NoRun())

    def test_each_helper_makes_its_frame(self):
        """HA-02, and the log level's default of the mission's cases."""
        emit.emit_result({"a": (1,)})
        emit.emit_result()
        emit.emit_intermediate("half", {2})
        emit.emit_intermediate(7)
        emit.emit_log("m")
        emit.emit_log(Exception("e"), level="warning")
        want = [
            {"type": "final_result", "data": {"a": [1]}},
            {"type": "final_result", "data": None},
            {"type": "intermediate", "label": "half", "data": [2]},
            {"type": "intermediate", "label": "7", "data": None},
            {"type": "log", "message": "m", "level": "info"},
            {"type": "log", "message": "e", "level": "warning"},
        ]
        self.assertEqual(self.emitter.frames, want)

    def test_labels_and_levels_are_bounded(self):
        emit.emit_intermediate("l" * 5000)
        emit.emit_log("m", "v" * 5000)
        sizes = [len(self.emitter.frames[0]["label"]), len(self.emitter.frames[1]["level"])]
        self.assertEqual(sizes, [1024, 64])

    def test_nothing_is_emitted_while_no_script_runs(self):
        emit.use(emit._NoRun())
        with self.assertRaisesRegex(RuntimeError, "while no script runs"):
            emit.emit_log("m")


class EmitterTest(unittest.TestCase):
    """HA-10: lines of frames never mix."""

    def pipe(self):
        read, write = os.pipe()
        return read, write

    def use(self, function, fd):
        emitter = emit.Emitter(fd)
        emit.use(emitter)
        function(emitter)

    def collect(self, function):
        """All lines that `function(emitter)`, in a process of its own, writes."""
        read, write = self.pipe()
        pid = in_a_process(self.use, function, write)
        os.close(write)
        data = read_all(read)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(status, 0)
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def test_threads_do_not_mix_their_lines(self):
        def write(emitter):
            def work(number):
                for n in range(30):
                    emitter.send({"from": number, "n": n, "fill": str(number) * 3000})

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        frames = self.collect(write)
        self.assertEqual(len(frames), 240)
        for number in range(8):
            got = [(f["n"], f["fill"]) for f in frames if f["from"] == number]
            self.assertEqual(got, [(n, str(number) * 3000) for n in range(30)])

    def test_lines_that_are_held_are_written_with_the_next_one_in_order(self):
        read, write = self.pipe()
        emitter = emit.Emitter(write)
        for n in range(2):
            emitter.hold_line(emitter.line_of({"n": n}))
        self.assertEqual(held_in(read), 0)
        emitter.send({"n": 2})
        first = os.read(read, 1 << 16)
        emitter.hold_line(emitter.line_of({"n": 3}))
        emitter.release()
        emitter.release()
        os.close(write)
        self.assertEqual((first, read_all(read)), (b'{"n":0}\n{"n":1}\n{"n":2}\n', b'{"n":3}\n'))

    def test_a_forked_child_does_not_write_what_its_parent_holds(self):
        def write(emitter):
            emitter.hold_line(emitter.line_of({"from": "parent"}))
            os.waitpid(in_a_process(emitter.send, {"from": "child"}), 0)
            emitter.release()

        self.assertEqual([frame["from"] for frame in self.collect(write)], ["child", "parent"])

    def test_forked_children_do_not_mix_their_lines_with_one_another_or_with_threads(self):
        def write(emitter):
            def work(name, count=12):
                for n in range(count):
                    emitter.send({"from": name, "n": n, "fill": "x" * 100_000})

            pids = [in_a_process(work, f"child {n}") for n in range(3)]
            threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(2)]
            for thread in threads:
                thread.start()
            work("main")
            for thread in threads:
                thread.join()
            for pid in pids:
                os.waitpid(pid, 0)

        frames = self.collect(write)
        got = sorted((f["from"], f["n"], len(f["fill"])) for f in frames)
        names = ["child 0", "child 1", "child 2", "main", "thread 0", "thread 1"]
        self.assertEqual(got, [(name, n, 100_000) for name in names for n in range(12)])

    def test_a_fork_that_is_no_writer_leaves_writers_without_the_lock_between_processes(self):
        def fork_twice():
            emit.use(emitter := emit.Emitter(1))
            found = []
            for emitter.forks_write in (False, True):
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
                found.append(emitter.lock_fd is not None)
            return found

        self.assertEqual(forked.call(fork_twice), [False, True])

    def test_a_fork_in_the_middle_of_a_threads_line_waits_for_its_end(self):
        read, write = self.pipe()
        told, tell = os.pipe()

        def script():
            emitter = emit.Emitter(write)
            emit.use(emitter)
            thread = threading.Thread(target=emitter.send, args=({"from": "thread", "fill": "x" * 2_000_000},))
            thread.start()
            wait_until_held(read, 60_000)
            os.write(tell, b".")
            child = in_a_process(emitter.send, {"from": "child"})
            os.waitpid(child, 0)
            thread.join()

        pid = in_a_process(script)
        os.close(write)
        os.close(tell)
        os.read(told, 1)
        data = read_all(read)
        os.waitpid(pid, 0)
        self.assertEqual([json.loads(line)["from"] for line in data.split(b"\n")[:-1]], ["thread", "child"])

    def test_a_process_that_separates_writes_beside_its_origin_and_closes_no_file_of_the_script(self):
        def separated(emitter, number):
            emitter.separate()
            left = path_of(number)
            emitter.send({"from": "copy"})
            return left

        def script(replaces):
            emitter = emit.Emitter(self.pipe()[1])
            emit.use(emitter)
            os.waitpid(in_a_process(int), 0)
            lock = emitter._between_processes
            fcntl.lockf(lock, fcntl.LOCK_EX)  # as a process does that is in the middle of a line
            if replaces:
                os.dup2(os.open(os.devnull, os.O_RDONLY), lock)
            return forked.call(separated, emitter, lock)

        self.assertEqual([forked.call(script, replaces) for replaces in (False, True)], [None, os.devnull])

    def interrupted(self, function, number):
        """All lines that `function(emitter)` writes, in a process that gets a signal in the middle of the first."""
        read, write = self.pipe()
        pid = in_a_process(self.use, function, write)
        os.close(write)
        wait_until_held(read, 60_000)
        os.kill(pid, number)
        data = read_all(read)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def test_a_signal_handler_may_emit_in_the_middle_of_a_line(self):
        def script(emitter):
            signal.signal(signal.SIGUSR1, lambda *_: emitter.send({"from": "handler"}))
            emitter.send({"from": "script", "fill": "x" * 2_000_000})

        lines = self.interrupted(script, signal.SIGUSR1)
        self.assertEqual([line["from"] for line in lines], ["script", "handler"])

    def test_the_alarm_waits_for_the_end_of_a_line(self):
        def script(emitter):
            emit.install_clock()
            emit.arm()
            try:
                emitter.send({"fill": "x" * 2_000_000})
            except emit.ScriptTimeout:
                try:
                    emitter.send({"from": "timeout"})
                except emit.ScriptTimeout:  # whoever goes on is told again, after the line
                    pass

        lines = self.interrupted(script, signal.SIGALRM)
        self.assertEqual([len(lines[0]["fill"]), lines[1:]], [2_000_000, [{"from": "timeout"}]])

    def test_no_line_is_torn_however_often_the_alarm_comes(self):
        def write(emitter):
            def ring(_number, _frame):
                try:
                    emitter.on_alarm()
                except emit.ScriptTimeout:
                    pass  # between two lines: that is where it may raise

            signal.signal(signal.SIGALRM, ring)
            signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
            for n in range(400):
                try:
                    emitter.send({"n": n, "fill": "x" * 3000})
                except emit.ScriptTimeout:
                    emitter._timeout_pending = False
            signal.setitimer(signal.ITIMER_REAL, 0)

        self.assertEqual(self.collect(write), [{"n": n, "fill": "x" * 3000} for n in range(400)])

    def test_a_lone_surrogate_travels_escaped(self):
        self.assertEqual(self.collect(lambda emitter: emitter.send({"m": "ü\udc80"})), [{"m": "ü\udc80"}])

    def test_the_clock_raises_outside_of_a_line(self):
        def script():
            emit.use(emit.Emitter(os.open(os.devnull, os.O_WRONLY)))
            emit.install_clock()
            emit.arm(0.01)
            try:
                while True:
                    pass
            except Exception:
                return "an Exception"
            except emit.ScriptTimeout:
                return "ScriptTimeout"

        self.assertEqual(forked.call(script), "ScriptTimeout")

    def test_an_alarm_after_the_end_of_the_script_is_late(self):
        def script():
            emit.use(emit.Emitter(os.open(os.devnull, os.O_WRONLY)))
            emit.install_clock()
            emit.arm()
            emit.disarm()
            os.kill(os.getpid(), signal.SIGALRM)
            return [emit.clock_ran_out()]

        self.assertEqual(forked.call(script), [False])

    def test_a_clock_that_is_past_already_rings_at_once(self):
        def script():
            emit.use(emit.Emitter(os.open(os.devnull, os.O_WRONLY)))
            emit.install_clock()
            try:
                emit.arm(-5)
                signal.pause()
            except emit.ScriptTimeout:
                return "rang"

        self.assertEqual(forked.call(script), "rang")
