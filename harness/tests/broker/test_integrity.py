import ctypes
import mmap
import os
import resource
import signal
import threading
import unittest
from unittest import mock

from sandglass_harness.broker import integrity


def _is_zombie(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] == b"Z"


class ExitStatusTest(unittest.TestCase):
    def ended(self, end):
        """A zombie: a process that ended, and that the test reaps when it is done."""
        pid = os.fork()
        if pid == 0:
            end()
            os._exit(70)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return pid

    def status_of(self, pid):
        stat = integrity.open_proc(f"{pid}/stat")
        try:
            return integrity.exit_status(stat)
        finally:
            if stat is not None:
                os.close(stat)

    def status_then_reaped(self, pid):
        try:
            return self.status_of(pid)
        finally:
            os.waitpid(pid, 0)

    def test_an_exit_code_is_reported_before_anybody_reaps(self):
        self.assertEqual(self.status_then_reaped(self.ended(lambda: os._exit(7))), 7 << 8)

    def test_a_signal_is_reported_before_anybody_reaps(self):
        pid = self.ended(lambda: os.kill(os.getpid(), signal.SIGKILL))
        self.assertEqual(self.status_then_reaped(pid), signal.SIGKILL)

    def test_a_process_that_lives_or_is_gone_has_no_status(self):
        pid = self.ended(lambda: os._exit(0))
        opened_before = integrity.open_proc(f"{pid}/stat")
        self.addCleanup(os.close, opened_before)
        os.waitpid(pid, 0)
        self.assertIsNone(integrity.exit_status(opened_before))
        self.assertIsNone(self.status_of(pid))
        self.assertIsNone(self.status_of(os.getpid()))

    def test_the_first_status_of_an_exiting_process_is_the_right_one(self):
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                memory = bytearray(b"x") * (16 << 20)  # that the kernel has to take back
                os._exit(len(memory) % 256 + 9)
            stat = integrity.open_proc(f"{pid}/stat")
            status = None
            while status is None:
                status = integrity.exit_status(stat)
            self.assertEqual(os.waitpid(pid, 0), (pid, status))
            self.assertEqual(status, 9 << 8)
            os.close(stat)

    def test_a_process_whose_first_thread_ended_before_another_has_no_status(self):
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            threading.Thread(target=lambda: (os.write(tell, b"."), signal.pause()), daemon=True).start()
            ctypes.CDLL(None).pthread_exit(None)
        os.read(ready, 1)
        try:
            while not _is_zombie(pid):
                pass
            self.assertIsNone(self.status_of(pid))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def test_the_probe_leaves_no_process_behind(self):
        self.assertIn(integrity.shows_exit_status(), (True, False))
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


class MemoryGrowthTest(unittest.TestCase):
    def setUp(self):
        read, self.go_on = os.pipe()
        self.done, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            held = []
            while size := int(os.read(read, 8)) << 20:
                held.append(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))  # malloc may still hold free pages
                held[-1].write(bytes(size))
                os.write(write, b"x")
            held.clear()
            os.write(write, b"x")
            signal.pause()
        for fd in (read, write):
            os.close(fd)
        for end in (lambda: os.waitpid(self.pid, 0), lambda: os.kill(self.pid, signal.SIGKILL)):
            self.addCleanup(end)
        for fd in (self.go_on, self.done):
            self.addCleanup(os.close, fd)

    def hold(self, mebibytes):
        os.write(self.go_on, str(mebibytes).encode())
        os.read(self.done, 1)

    def test_it_is_large_from_16_MiB_on_and_not_when_they_are_given_back(self):
        growth = integrity.MemoryGrowth(self.pid)
        found = []
        for mebibytes in (8, 12, 0):
            self.hold(mebibytes)
            found.append(growth.is_large())
        self.assertEqual(found, [False, True, False])


class ProcessLimitsTest(unittest.TestCase):
    def setUp(self):
        self.pid = os.fork()
        if self.pid == 0:
            signal.pause()
        self.addCleanup(os.waitpid, self.pid, 0)
        self.addCleanup(os.kill, self.pid, signal.SIGKILL)

    def changes_of(self, limits):
        """Returns how often the values differ from those before after each change of a limit, of the priority and of the CPUs."""
        noticed, changes = [], [lambda: os.setpriority(os.PRIO_PROCESS, self.pid, 7)]
        if len(os.sched_getaffinity(self.pid)) > 1:
            changes.append(lambda: os.sched_setaffinity(self.pid, {min(os.sched_getaffinity(self.pid))}))
        lowered = [which for which in integrity._RLIMITS if resource.prlimit(self.pid, which)[1] != 0]
        changes += [lambda which=which: self.lower(which) for which in lowered]
        for change in changes:
            before = limits.read()
            self.assertEqual(limits.read(), before)
            change()
            noticed.append(limits.read() != before)
        return noticed

    def lower(self, which):
        soft, hard = resource.prlimit(self.pid, which)
        if soft == 0:
            resource.prlimit(self.pid, which, (0, 1 if hard == resource.RLIM_INFINITY else hard - 1))
        else:
            resource.prlimit(self.pid, which, (1 if soft == resource.RLIM_INFINITY else soft - 1, hard))

    def test_every_change_is_noticed(self):
        self.assertEqual(set(self.changes_of(integrity.ProcessLimits([self.pid]))), {True})

    def test_every_change_is_noticed_where_proc_shows_no_limits(self):
        with mock.patch.object(integrity, "open_proc", return_value=None):
            limits = integrity.ProcessLimits([self.pid])
        self.assertEqual(set(self.changes_of(limits)), {True})


if __name__ == "__main__":
    unittest.main()
