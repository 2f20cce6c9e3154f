"""Sockets and files that outlive their processes.

No process holds a descriptor that is in flight in a cycle of sockets. Linux collects such cycles some milliseconds later, gVisor
never. Until then a script can read the sockets' names, and the files take space.
"""

import os
import time

from . import integrity

_PAUSE_SEC = 0.0005
_LIST_BYTES = 1 << 20
_SUM_BYTES = 64


class Uncollected:
    """Compares the numbers of sockets in the network namespace, and of blocks and inodes in the writable roots, with those before
    the first run."""

    def __init__(self, roots, sockets=None):
        # gVisor has no net/sockstat, so only AF_UNIX sockets are counted there. Cycles consist of them.
        sums = None if sockets else integrity.open_proc("net/sockstat")
        self._file = sums or sockets or integrity.open_proc("net/unix")
        # Allocating the buffer for a list takes longer than reading the sum.
        self._max_bytes = _LIST_BYTES if sums is None else _SUM_BYTES
        self._roots = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for root in roots]
        self._sockets, self._space = self._count_sockets(), self._read_space()

    def is_gone(self, budget_sec, closed_sockets=0):
        """Waits until no more is in use than before the first run. The bound for sockets is lower by `closed_sockets`. Returns
        False if that takes longer than the budget."""
        deadline = time.monotonic() + budget_sec
        while self._count_sockets() > self._sockets - closed_sockets or self._uses_more_space():
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SEC)
        return True

    def _count_sockets(self):
        """Parses the first line, `sockets: used NUMBER`, or counts the lines of a list."""
        text = os.pread(self._file, self._max_bytes, 0)
        return int(text.split(None, 3)[2]) if text.startswith(b"sockets: used ") else text.count(b"\n")

    def _uses_more_space(self):
        return any(now > normal for now, normal in zip(self._read_space(), self._space))

    def _read_space(self):
        found = [os.fstatvfs(root) for root in self._roots]
        return [count for space in found for count in (space.f_blocks - space.f_bfree, space.f_files - space.f_ffree)]
