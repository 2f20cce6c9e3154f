"""The clock of a run. Time in which the host executes tools does not count towards the script's timeout."""

import math
import os

from ..caps import GRACE_SEC

PAUSE_SHARE = 0.1  # mean pause between two measurements, as a fraction of the time until the kill
MIN_PAUSE_SEC, MAX_PAUSE_SEC = 0.05, 0.5  # bounds of that mean
MEASURING_ERROR_SEC = 0.05  # processor times have the resolution of the kernel's clock
SAMPLE_AHEAD_SEC, SAMPLE_AHEAD_SHARE = 0.25, 0.25  # from the last sample to the deadline; at most this fraction of the timeout
MAX_UNREPORTED_SEC = 0.1  # the host reports short calls together once they add up to this time


def random_pause(mean):
    """Returns an exponentially distributed time in seconds, so that no measurement predicts the next one."""
    return -mean * math.log((int.from_bytes(os.urandom(4), "little") + 1) / 2**32)


class Clock:
    """The deadline of a run, which moves while tools execute: by their time less the processor time that the script used
    meanwhile, and at most by `max_wait_sec`.

    Only the host knows when a tool executes. Processor time is measured at random times, never when the host reports: the
    script knows when a call begins and ends, and could hide processes from a measurement at that time. `on_deadline()`
    is called once; without it, the script's process has a timer of its own. `sample()` is called shortly before the deadline, again
    if that has moved since, and at the kill.
    """

    def __init__(self, started, timeout_sec, max_wait_sec=0, processor=None, on_deadline=None, pause=random_pause, sample=None):
        self._base = started + timeout_sec
        self._max_wait = max_wait_sec
        self._processor = processor
        self._on_deadline = on_deadline
        self._pause = pause
        self._sample = sample
        self._sampled_for = None  # the deadline before which it has sampled
        self._sample_ahead = min(SAMPLE_AHEAD_SEC, timeout_sec * SAMPLE_AHEAD_SHARE)
        self._moves = max_wait_sec > 0  # False once the deadline has passed
        self._granted = 0.0
        self._executed = 0.0  # as the host last reported
        self._executing = False
        self._reported_at = started
        self._counted = 0.0  # the part of this time that measurements have taken into account
        self._unclaimed = 0.0  # idle time that belongs to short calls if the host reports them later
        self._measured_at = started
        if self._moves:
            self._plan_measurement(started)

    @property
    def deadline(self):
        """The time at which the script must end."""
        return self._base + max(0.0, self._granted)

    @property
    def kill_at(self):
        """The time at which it is killed."""
        return self.deadline + GRACE_SEC

    @property
    def due(self):
        """The time of the next call of advance()."""
        due = self.kill_at if self._on_deadline is None else self.deadline
        if self._has_to_sample():
            due = min(due, self.deadline - self._sample_ahead)
        return min(due, self._measure_at) if self._moves else due

    def report(self, executed_sec, executing, now):
        """Records the host's report: the total time of tools in this run so far, and whether one executes now."""
        self._executed = max(self._executed, executed_sec)
        self._executing, self._reported_at = executing, now

    def advance(self, now):
        """Measures, samples and calls `on_deadline()` as they fall due. Returns True if the script must be killed."""
        if self._has_to_sample() and now >= self.deadline - self._sample_ahead:
            self._sampled_for = self.deadline
            self._sample()
        if self._moves and now >= min(self._measure_at, self.deadline):
            self._measure(now)
            self._plan_measurement(now)
        if self._on_deadline is not None and now >= self.deadline:
            self._moves = False
            call, self._on_deadline = self._on_deadline, None
            call()
        is_over = now >= self.kill_at
        if is_over and self._sample is not None:
            self._sample()
        return is_over

    def _has_to_sample(self):
        return self._sample is not None and self._sampled_for != self.deadline

    def _measure(self, now):
        """Moves the deadline by the time in which tools executed and the script did not use the processor."""
        passed = now - self._measured_at
        self._measured_at = now
        # A script can notice a measurement, and start hidden processes just after it. A process that is found running counts
        # for at least the mean pause: on average, this makes up for the measurements that find none.
        idle = passed - self._processor.measure(max(passed, self._mean_pause)) + self._unclaimed
        executed = self._take_executed(now)
        # Parallel processes can use up granted time, but not for what they used between calls.
        lowest = min(0.0, passed - 2 * executed, passed - self._mean_pause if self._executing else 0.0)
        change = max(min(executed, idle), lowest)
        self._granted = min(max(self._granted + change, -MEASURING_ERROR_SEC), self._max_wait)
        self._unclaimed = 0.0 if self._executing else min(max(0.0, idle - max(0.0, change)), MAX_UNREPORTED_SEC)

    def _take_executed(self, now):
        """Returns the time in which tools executed since the last call."""
        executed = self._executed + (now - self._reported_at if self._executing else 0.0)
        new = max(0.0, executed - self._counted)
        self._counted += new
        return new

    def _plan_measurement(self, now):
        """Schedules the next measurement: sooner as the kill comes nearer."""
        self._mean_pause = min(max((self.kill_at - now) * PAUSE_SHARE, MIN_PAUSE_SEC), MAX_PAUSE_SEC)
        self._measure_at = now + self._pause(self._mean_pause)
