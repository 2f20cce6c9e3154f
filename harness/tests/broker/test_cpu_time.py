import os
import time
import unittest

from sandglass_harness.broker.cpu_time import CpuTime, used_by

BURN_SEC = 0.1
TICK_SEC = 1 / os.sysconf("SC_CLK_TCK")


def burn():
    started = time.process_time()
    while time.process_time() - started < BURN_SEC:
        pass


class Zygote:
    """A process that forks children which use BURN_SEC, and reaps them at a command."""

    def __init__(self):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._commands)
            child = None
            os.write(answers, b".")
            while command := os.read(commands, 1):
                if command == b"S":
                    child = os.fork()
                    if child == 0:
                        burn()
                        os._exit(0)
                    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
                else:
                    os.waitpid(child, 0)
                os.write(answers, child.to_bytes(4, "little"))
            os._exit(0)
        os.close(commands)
        os.close(answers)
        os.read(self._answers, 1)  # it has run

    def ask(self, command):
        os.write(self._commands, command)
        return int.from_bytes(os.read(self._answers, 4), "little")

    def end(self):
        os.close(self._commands)
        os.waitpid(self.pid, 0)


class CpuTimeTest(unittest.TestCase):
    def setUp(self):
        self.zygote = Zygote()
        self.cpu_time = CpuTime(self.zygote.pid)

    def tearDown(self):
        os.close(self.cpu_time._stat)

    def measure(self, pid):
        return self.cpu_time.field(pid)["cpu_time_ms"] / 1000

    def test_a_child_counts_before_it_is_reaped_and_once_afterwards(self):
        before = self.cpu_time._sec
        pid = self.zygote.ask(b"S")
        unreaped = self.measure(pid)
        self.assertGreaterEqual(unreaped - before, BURN_SEC)
        self.zygote.ask(b"R")
        self.assertEqual(used_by(pid), 0)
        reaped = self.measure(pid)
        self.assertGreaterEqual(reaped - before, BURN_SEC - 2 * TICK_SEC)
        self.assertLess(reaped - before, 2 * BURN_SEC)
        self.zygote.end()

    def test_what_the_broker_has_reaped_counts(self):
        before = self.cpu_time._sec
        orphan = os.fork()
        if orphan == 0:
            burn()
            os._exit(0)
        os.waitpid(orphan, 0)
        self.assertGreaterEqual(self.measure(orphan) - before, BURN_SEC)
        self.zygote.end()

    def test_a_zygote_that_has_ended_counts_once(self):
        pid = self.zygote.ask(b"S")
        self.zygote.ask(b"R")
        before = self.measure(pid)
        self.zygote.end()
        after = self.measure(pid)
        self.assertLess(abs(after - before), BURN_SEC / 2)

    def test_where_the_kernel_shows_no_times_or_wrong_ones_nothing_is_reported(self):
        self.assertEqual(CpuTime(self.zygote.pid, is_exact=False).field(os.getpid()), {})
        self.zygote.end()
        self.assertEqual(CpuTime(self.zygote.pid).field(os.getpid()), {})
