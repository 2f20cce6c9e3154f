"""A keeper and its activity, without a sandbox around them."""

import os
import select
import signal
import time
import unittest
from unittest import mock

from sandglass_harness.broker import integrity
from sandglass_harness.broker.keepers import KeptSpare
from sandglass_harness.broker.to_child import ToChild
from sandglass_harness.script import keeper, landlock
from sandglass_harness.script.script_process import Preloaded

FAMILY = "sleep 1000 & setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & exec sleep 1000"
# Its processes end by themselves, after the test has failed: no sandbox ends them where the keeper does not.
BOMB = """
import os, time
end = time.monotonic() + 10
for _ in range(400):
    if os.fork():
        break
    os.setsid()
else:
    raise SystemExit
while time.monotonic() < end:
    pass
"""


END_SEC = 8  # these tests show that everything ends, not how fast on a busy machine


class KeeperTest(unittest.TestCase):
    def start(self, has_landlock):
        """Forks a keeper as the zygote does. It never kills by kill(-1) unless the kernel was seen to hold that back."""
        spare = KeptSpare()
        pid = os.fork()
        if pid == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
            if not has_landlock:
                mock.patch.object(landlock, "scope_signals", return_value=False).start()
            given = [os.dup(fd) for fd in spare.child_fds()]
            spare.close_child_ends()
            spare.close()  # the end of the broker, which the zygote does not have
            mock.patch.object(keeper, "END_SEC", END_SEC).start()
            keeper._keep(given, Preloaded({}))
        self.addCleanup(os.waitpid, pid, 0)
        spare.close_child_ends()
        self.addCleanup(spare.close)
        self.assertIsNone(spare.take_first())
        return spare

    def become(self, spare, *argv, **changes):
        """Has the first process become a program. Returns what it reports: nothing if it was executed."""
        spare.become(b"P")
        request = {"argv": argv, "env": {}, "cwd": "", "limits": {}, "tty": False, "workspace": "/", "import_paths": []}
        ToChild(spare.socket.fileno()).put_request({**request, **changes})
        report = b""
        while select.select([spare.socket], [], [], 10)[0]:
            data = spare.socket.recv(4096)
            if not data:
                return report
            report += data
        raise AssertionError("it neither became the program nor said why")

    def read(self, spare, count):
        self.assertTrue(select.select([spare.out_fd], [], [], 10)[0], "no output")
        return os.read(spare.out_fd, count)

    def end(self, spare):
        spare.ask_to_end()
        status, gone = spare.read_answer()
        self.assertTrue(gone)
        return status

    def assert_ended(self, spare):
        """Every process of the activity holds its stdout."""
        self.assertEqual(self.read(spare, 1), b"")

    def test_the_end_of_an_activity_reaches_every_session_of_it(self):
        for has_landlock in (False, True):
            with self.subTest(has_landlock=has_landlock):
                spare = self.start(has_landlock)
                if has_landlock and not spare.has_domain:
                    self.skipTest("this kernel has no Landlock with a scope of signals")
                self.assertEqual(spare.has_domain, has_landlock)
                self.assertEqual(self.become(spare, "sh", "-c", FAMILY), b"")
                self.assertEqual(self.end(spare), signal.SIGKILL)
                self.assert_ended(spare)

    def test_a_family_that_goes_on_forking_ends_without_landlock(self):
        spare = self.start(False)
        self.become(spare, "/usr/bin/python3", "-c", BOMB)
        self.end(spare)
        self.assert_ended(spare)

    def test_a_program_whose_main_thread_has_ended_is_ended_without_landlock(self):
        code = "import ctypes, threading; threading.Thread(target=threading.Event().wait).start(); ctypes.CDLL(None).pthread_exit(None)"
        spare = self.start(False)
        self.become(spare, "/usr/bin/python3", "-c", code)
        deadline = time.monotonic() + 10
        while not integrity.status_field(spare.pid, "State").startswith("Z") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(integrity.has_ended(spare.pid))
        self.end(spare)
        self.assert_ended(spare)

    def test_orphans_are_reaped_while_the_program_runs(self):
        spare = self.start(False)
        self.become(spare, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (true &); done; echo done; exec sleep 1000")
        self.assertEqual(self.read(spare, 100), b"done\n")
        deadline = time.monotonic() + 5
        while self.children_of_keeper(spare) != [spare.pid] and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.children_of_keeper(spare), [spare.pid])
        self.end(spare)

    def children_of_keeper(self, spare):
        with open(f"/proc/{spare.pid}/stat") as file:
            parent = file.read().rpartition(")")[2].split()[1]
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def test_the_status_of_a_program_that_ended_itself_is_kept(self):
        spare = self.start(False)
        self.become(spare, "sh", "-c", "exit 7")
        select.select([spare.pid_fd], [], [], 10)
        self.assertEqual(os.waitstatus_to_exitcode(self.end(spare)), 7)

    def test_a_program_that_cannot_be_executed_says_why(self):
        for argv, changes, code in (
            (["no-such-program"], {}, b"no_such_program"),
            (["/etc"], {}, b"not_executable"),
            (["true"], {"cwd": "no-such-directory"}, b"not_found"),
            (["true"], {"env": {"PATH": ""}}, b"no_such_program"),
        ):
            with self.subTest(argv=argv, **changes):
                spare = self.start(False)
                self.assertIn(b'"code": "%s"' % code, self.become(spare, *argv, **changes))
                self.end(spare)

    def test_a_signal_reaches_the_group_of_the_program(self):
        spare = self.start(False)
        self.become(spare, "sh", "-c", "trap 'echo term; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
        self.assertEqual(self.read(spare, 6), b"ready\n")
        spare.ask_to_signal(signal.SIGTERM, 0)
        self.assertEqual(self.read(spare, 5), b"term\n")
        select.select([spare.pid_fd], [], [], 10)
        self.assertEqual(os.waitstatus_to_exitcode(self.end(spare)), 3)


if __name__ == "__main__":
    unittest.main()
