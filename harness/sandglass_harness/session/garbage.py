"""Collects the garbage of a session. Between two cells all objects are frozen, because a collection writes to those that it looks
at, and memory that is shared with a copy is then copied. So a collection inside a cell sees no objects of earlier cells, unless
the cell asks for a full one."""

import functools
import gc
import os
import resource
import sys

from ..script.door import called_by_script

GROWTH = 1.25  # growth factor of the allocated blocks or of the memory, beyond which garbage is collected before a fork
MIN_GROWTH = 32 << 20  # bytes; less is not worth the time
_collect = gc.collect
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Garbage:
    """The garbage of this process. From now on `gc.collect()` sees all objects once some were frozen."""

    def __init__(self):
        self._blocks = self._memory = 0  # after the last full collection
        self._has_frozen = False
        self._copyable = None

        @called_by_script
        @functools.wraps(_collect)
        def collect(generation=2):
            return self._collect_all() if generation == 2 and self._has_frozen else _collect(generation)

        gc.collect = collect

    def limit(self, copyable):
        """Sets the bytes of memory beyond which the broker makes no copy; None if there is no such limit."""
        self._copyable = copyable

    def freeze(self):
        """Freezes all objects. Collects garbage before if much was allocated."""
        gc.unfreeze()
        blocks, memory = sys.getallocatedblocks(), _memory()
        if blocks > self._blocks * GROWTH or memory > max(self._memory * GROWTH, self._memory + MIN_GROWTH):
            self._collect_all()
        gc.freeze()
        self._has_frozen = True

    def make_copyable(self):
        """Collects garbage if the process uses too much memory for a copy. It runs after every cell, so it must be fast."""
        if not self._has_frozen or self._copyable is None:
            return
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # takes a seventh of the time of _memory()
        if peak > self._copyable and _memory() > max(self._copyable, self._memory + MIN_GROWTH):
            self._collect_all()

    def _collect_all(self):
        gc.unfreeze()
        found = _collect()
        self._blocks, self._memory = sys.getallocatedblocks(), _memory()
        return found


def _memory():
    """Returns the bytes of memory that this process uses; 0 if they cannot be read."""
    try:
        fd = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(fd, 256).split()[1]) * _PAGE
        finally:
            os.close(fd)
    except Exception:  # no descriptor is left, or cells have changed Python
        return 0
