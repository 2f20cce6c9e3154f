"""The CPU time of a sandbox, from the kernel's own counts."""

import os
import resource
import time

from . import integrity
from .processor_time import CHILDREN_SYSTEM, CHILDREN_USER, TICKS

_OF_PROCESS = 2  # in the id of a clock: all threads of a process, by the scheduler's count (linux/posix-timers.h)


class CpuTime:
    """Adds up the CPU time of broker and zygote and of all processes that they have reaped. Without `is_exact` it reports none:
    gVisor also counts time that a process did not get."""

    def __init__(self, zygote_pid, is_exact=True):
        self._zygote_pid = zygote_pid
        self._stat = integrity.open_proc(f"{zygote_pid}/stat")
        self._shown = is_exact and self._stat is not None and used_by(zygote_pid) > 0
        self.note()

    def note(self):
        """Measures, between two runs."""
        self._sec = self._measure() if self._shown else None

    def field(self, pid):
        """Returns the field for a frame, in milliseconds; none if the time is not known. `pid` is the child of the zygote."""
        if not self._shown:
            return {}
        unreaped = used_by(pid)
        if not unreaped:  # it may have started others, which are reaped as well
            self.note()
        return {"cpu_time_ms": round((self._sec + unreaped) * 1000, 3)}

    def _measure(self):
        counts = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        own = sum(count.ru_utime + count.ru_stime for count in counts)
        try:
            fields = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
        except OSError:  # the broker has reaped the zygote
            return own
        # The zygote reads no clock itself: each page that it writes to is copied.
        return own + used_by(self._zygote_pid) + sum(map(int, fields[CHILDREN_USER : CHILDREN_SYSTEM + 1])) / TICKS


def used_by(pid):
    """Returns the CPU seconds of another process, without those of its children; 0 if it was reaped."""
    try:
        return time.clock_gettime(~pid << 3 | _OF_PROCESS)
    except OSError:
        return 0.0
