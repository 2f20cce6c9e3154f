import os
import signal
import subprocess
import sys
import time
import unittest

from sandglass_harness.broker import lock_wait

PATIENCE = 10
_DOUBLE = "import threading; lock = threading.Lock(); lock.acquire(); print(flush=True); lock.acquire()"
_OF_OWN = "import signal; signal.signal(signal.{}, lambda *_: None); " + _DOUBLE


class Waiting:
    """A program that prints a line when it is about to wait."""

    def __init__(self, test, source):
        self._program = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
        test.addCleanup(self._program.__exit__, None, None, None)
        test.addCleanup(self._program.kill)
        self._program.stdout.readline()
        self.pid = self._program.pid
        self.settle()

    def settle(self):
        """Waits until it sleeps."""
        end = time.monotonic() + PATIENCE
        while self._syscall() == "running" and time.monotonic() < end:
            time.sleep(0.001)

    def alarm(self):
        """Sends SIGALRM, and waits until it has been handled."""
        before = self._switches()
        os.kill(self.pid, signal.SIGALRM)
        end = time.monotonic() + PATIENCE
        while self._switches() == before and time.monotonic() < end:
            time.sleep(0.001)
        self.settle()

    def _switches(self):
        with open(f"/proc/{self.pid}/status") as file:
            return next(line for line in file if line.startswith("voluntary_ctxt"))

    def _syscall(self):
        with open(f"/proc/{self.pid}/syscall") as file:
            return file.read().split()[0]


@unittest.skipUnless(os.path.exists("/proc/self/syscall"), "system calls of processes cannot be seen here")
class LockWaitTest(unittest.TestCase):
    def is_endless(self, source):
        return lock_wait.read_endless_wait(Waiting(self, source).pid) is not None

    def test_locks_that_nothing_can_release_are_found(self):
        self.assertTrue(self.is_endless(_DOUBLE))
        self.assertTrue(self.is_endless("import queue; print(flush=True); queue.Queue().get()"))
        self.assertTrue(self.is_endless("import threading; print(flush=True); threading.Event().wait()"))

    def test_what_may_end_by_itself_is_no_such_wait(self):
        for source in (
            "import time; print(flush=True); time.sleep(1000)",
            "import queue; print(flush=True); queue.Queue().get(timeout=1000)",
            "import os; read, _ = os.pipe(); print(flush=True); os.read(read, 1)",
            "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start(); " + _DOUBLE,
            "import multiprocessing; lock = multiprocessing.Lock(); lock.acquire(); print(flush=True); lock.acquire()",
            _OF_OWN.format("SIGUSR1"),
        ):
            with self.subTest(source):
                self.assertFalse(self.is_endless(source))
        process = Waiting(self, _OF_OWN.format("SIGALRM"))
        self.assertIsNone(lock_wait.read_endless_wait(process.pid, alarm=signal.SIGRTMAX))  # a timer of its own may ring
        self.assertIsNone(lock_wait.read_endless_wait(os.getpid()))  # it runs
        self.assertIsNone(lock_wait.read_endless_wait(1 << 22))  # it has ended

    def test_a_wait_outlasts_the_alarm_only_if_the_alarm_came(self):
        process = Waiting(self, _OF_OWN.format("SIGALRM"))
        wait = lock_wait.LockWait(process, signal.SIGALRM)
        wait.sample()
        self.assertTrue(wait.was_endless())
        wait.sample()
        self.assertFalse(wait.outlasts_alarm())
        process.alarm()
        wait.sample()
        self.assertTrue(wait.outlasts_alarm())


if __name__ == "__main__":
    unittest.main()
