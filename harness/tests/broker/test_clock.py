import os
import shutil
import tempfile
import unittest

from sandglass_harness.broker.clock import Clock
from sandglass_harness.broker.processor_time import TICKS, ProcessorTime


class Used:
    """Processor time as a test says it."""

    def __init__(self):
        self.seconds = 0.0

    def measure(self, _elapsed):
        seconds, self.seconds = self.seconds, 0.0
        return seconds


class Hidden:
    """A process that nobody waits for: only a measurement that finds it running counts it."""

    runs = False

    def measure(self, elapsed):
        return elapsed if self.runs else 0.0


class ClockTest(unittest.TestCase):
    """EX-08, HA-06: time in which the host executes tools moves the deadline, less the processor time used meanwhile."""

    def setUp(self):
        self.reached = []
        self.used = Used()
        self.clock = self.make(self.used, pause=lambda _mean: 0.0)  # each call of advance() samples

    def make(self, processor, **options):
        return Clock(100.0, 10, max_wait_sec=300, processor=processor, on_deadline=lambda: self.reached.append(True), **options)

    def report(self, executed, executing, now):
        self.clock.report(executed, executing, now)
        self.clock.advance(now)

    def execute(self, start, end, used=0.0):
        """A call that executes on the host from `start` to `end`, while the script uses the processor."""
        before = self.executed
        self.report(before, True, start)
        self.used.seconds = used
        self.report(before + end - start, False, end)
        self.executed += end - start

    executed = 0.0

    def test_a_call_moves_the_deadline_by_the_time_that_it_took(self):
        self.execute(101, 141)
        self.assertAlmostEqual(self.clock.deadline, 150)
        self.assertAlmostEqual(self.clock.kill_at, 150.3)

    def test_the_deadline_moves_while_the_call_still_executes(self):
        self.report(0, True, 101)
        self.assertFalse(self.clock.advance(115))
        self.assertEqual(self.reached, [])
        self.assertAlmostEqual(self.clock.deadline, 124)

    def test_a_loop_beside_a_slow_call_buys_no_time(self):
        self.clock = self.make(self.used, pause=lambda mean: mean)
        self.clock.advance(101)
        self.clock.report(0, True, 101)
        now = 101
        while not self.reached:
            self.assertLess(self.clock.due, 110.5)
            step = self.clock.due - now
            now, self.used.seconds = self.clock.due, step
            self.assertFalse(self.clock.advance(now))
        self.assertLess(now, 110.2)
        self.assertTrue(self.clock.advance(now + 0.31))

    def test_two_loops_take_back_what_was_granted(self):
        self.execute(101, 106)
        self.execute(106, 108, used=4)
        self.assertAlmostEqual(self.clock.deadline, 113)

    def test_many_short_calls_count_together_once_and_never_more_than_the_time_that_passed(self):
        self.report(2, False, 102)
        self.used.seconds = 2.0
        self.report(2, False, 104)
        self.assertAlmostEqual(self.clock.deadline, 112)
        self.report(1000, False, 105)
        self.assertAlmostEqual(self.clock.deadline, 113)

    def test_processor_time_between_short_calls_is_the_scripts_own(self):
        self.used.seconds = 1.0
        self.report(2, False, 103)
        self.assertAlmostEqual(self.clock.deadline, 112)
        self.used.seconds = 2.0
        self.report(4, False, 106)
        self.assertAlmostEqual(self.clock.deadline, 113)

    def test_short_calls_that_the_host_reports_after_a_measurement_count_as_well(self):
        for n in range(1, 51):
            self.used.seconds = 0.02
            self.clock.advance(100 + 0.12 * n - 0.05)
            self.report(0.1 * n, False, 100 + 0.12 * n)
        self.assertAlmostEqual(self.clock.deadline, 115)

    def test_the_granted_time_has_a_limit(self):
        self.execute(101, 1101)
        self.assertAlmostEqual(self.clock.deadline, 410)

    def test_without_a_limit_nothing_moves_the_deadline(self):
        clock = Clock(100.0, 10)
        clock.report(0, True, 101)
        clock.report(40, False, 141)
        self.assertEqual((clock.deadline, clock.due), (110, 110.3))

    def test_after_the_deadline_nothing_moves_the_deadline(self):
        self.assertFalse(self.clock.advance(110.1))
        self.assertEqual(self.reached, [True])
        self.clock.report(0, True, 110.1)
        self.assertTrue(self.clock.advance(110.4))
        self.assertEqual(self.reached, [True])

    def test_it_samples_before_the_deadline_again_if_that_moves_and_at_the_kill(self):
        samples = []
        clock = self.make(self.used, pause=lambda _mean: 1.0, sample=lambda: samples.append(now))
        for now in (109.7, 109.8, 109.9):
            clock.advance(now)
        self.assertEqual(samples, [109.8])
        self.assertEqual(self.reached, [])
        clock.report(0, True, 109.9)
        clock.report(4, False, 113.9)
        for now in (113.7, 113.8, 113.9):
            clock.advance(now)
        self.assertEqual((samples, clock.deadline), ([109.8, 113.8], 114))
        now = 114.4
        self.assertTrue(clock.advance(now))
        self.assertEqual(samples, [109.8, 113.8, 114.4])

    def test_it_samples_once_before_a_deadline_that_does_not_move(self):
        samples = []
        clock = Clock(100.0, 0.4, sample=lambda: samples.append(now))
        self.assertAlmostEqual(clock.due, 100.3)
        for now in (100.29, 100.35, 100.36, 100.69, 100.71):
            clock.advance(now)
        self.assertEqual(samples, [100.35, 100.71])


class HiddenProcessesTest(unittest.TestCase):
    """P-27: a script computes in processes that nobody waits for. It knows when the host reports, and notices measurements."""

    TIMEOUT = 10

    def used(self, computes):
        """Returns the processor time that a script uses until its deadline, in calls of 100 ms each. It computes while
        `computes(time since the last measurement, time since the call began, time until the deadline)` is true."""
        reached, hidden = [], Hidden()
        clock = Clock(0.0, self.TIMEOUT, max_wait_sec=300, processor=hidden, on_deadline=lambda: reached.append(True))
        used = now = 0.0
        measured = now
        for step in range(1, 400_000):
            now, before = step / 1000, now
            into = step % 100
            if into in (10, 99):
                clock.report(now, into == 10, now)
            hidden.runs = computes(now - measured, into / 1000, clock.deadline - now)
            used += (now - before) * hidden.runs
            if now >= clock.due:
                measured = now
                clock.advance(now)
            if reached:
                break
        return used

    def test_hidden_processes_buy_no_time_if_they_end_before_each_report(self):
        self.assertLess(self.used(lambda _since, into, _left: 0.015 < into < 0.095), 3 * self.TIMEOUT)

    def test_hidden_processes_buy_no_time_if_they_begin_after_each_measurement(self):
        for length in (0.1, 0.3, 0.5):
            used = self.used(lambda since, _into, left, length=length: since < length and left > 0.005)
            self.assertLess(used, 3 * self.TIMEOUT)


class ProcessorTimeTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.time = ProcessorTime({1, 2}, own=7, root=self.root)

    def put(self, pid, seconds, state="S"):
        """A process that has used the processor for four times `seconds`."""
        ticks = " ".join([str(int(seconds * TICKS))] * 4)
        os.makedirs(f"{self.root}/{pid}", exist_ok=True)
        with open(f"{self.root}/{pid}/stat", "w") as file:
            file.write(f"{pid} (a) b (c) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 20 0\n")

    def test_the_time_of_each_process_since_the_last_measurement_counts_once(self):
        self.put(1, 1000), self.put(2, 1000), self.put(7, 1), self.put(8, 2)
        self.assertEqual(self.time.measure(0), 12)
        self.assertEqual(self.time.measure(0), 0)
        self.put(7, 2, state="R")
        self.assertEqual(self.time.measure(9), 4)

    def test_a_process_that_has_ended_takes_nothing_back(self):
        self.put(7, 1), self.put(8, 100)
        self.time.measure(0)
        self.put(7, 2)
        shutil.rmtree(f"{self.root}/8")
        self.assertEqual(self.time.measure(0), 4)

    def test_a_process_that_runs_beside_the_script_has_used_the_whole_time(self):
        self.put(7, 0), self.put(8, 0, state="R")
        self.assertEqual(self.time.measure(5), 5)

    def test_it_reads_the_files_of_the_kernel(self):
        time, end = ProcessorTime((), own=os.getpid()), os.times().user + 0.05
        while os.times().user < end:
            pass
        self.assertGreater(time.measure(0), 0.04)


if __name__ == "__main__":
    unittest.main()
