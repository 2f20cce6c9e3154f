"""The clock of a run. Time in which the host executes tools is not the script's time."""

import os

from ..caps import GRACE_SEC

SHORTEST_LOOK_SEC, LONGEST_LOOK_SEC = 0.05, 1.0
OVERDRAFT_SEC = 0.05  # a reading has the resolution of the kernel's clock, and may come a moment late


class Clock:
    """The deadline of a run, which moves while tools execute: by their time less the processor time that the script used
    meanwhile, and by `max_wait_sec` at most.

    Only the host says when a tool executes. `ring()` is called once, at the deadline; without it the script's process has a
    timer of its own.
    """

    def __init__(self, started, timeout_sec, max_wait_sec=0, processor=None, ring=None):
        self._base = started + timeout_sec
        self._most = max_wait_sec
        self._processor = processor
        self._ring = ring
        self._granted = 0.0
        self._executed = 0.0  # as the host last reported
        self._executing = False
        self._counted_to = started
        self._next_look = 0.0

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
        """The time of the next call of is_over()."""
        due = self.kill_at if self._ring is None else self.deadline
        return min(due, self._next_look) if self._executing else due

    def report(self, executed_sec, executing, now):
        """The host says for how long tools have executed in this run so far, and whether one does now."""
        if self._most <= 0:
            return
        self._count(now, executed_sec)
        self._executing = executing
        self._executed = max(self._executed, executed_sec)
        self._plan_look(now)

    def is_over(self, now):
        """True if the script must be killed. Rings at the deadline."""
        if self._executing and now >= min(self._next_look, self.deadline):
            self._count(now, self._executed)
            self._plan_look(now)
        if self._ring is not None and now >= self.deadline:
            self._executing, self._most = False, 0  # nothing moves it from now on
            ring, self._ring = self._ring, None
            ring()
        return now >= self.kill_at

    def _count(self, now, executed_sec):
        passed = now - self._counted_to
        used = self._processor.take(passed)
        if self._executing:
            granted = max(self._granted + passed - used, -OVERDRAFT_SEC)
        else:  # short calls since the last report; what was used may have been used between them
            executed = min(max(0.0, executed_sec - self._executed), passed)
            granted = self._granted + max(0.0, executed - max(0.0, used - (passed - executed)))
        self._granted = min(granted, self._most)
        self._counted_to = now

    def _plan_look(self, now):
        """Looks more often as the deadline comes near. At random, so that no process can sleep while it is looked at."""
        pause = min(max((self.kill_at - now) / 4, SHORTEST_LOOK_SEC), LONGEST_LOOK_SEC)
        self._next_look = now + pause * (0.5 + os.urandom(1)[0] / 512)
