"""Sockets and files that outlive their processes.

A descriptor that waits in a cycle of sockets is held by no process. Linux collects such cycles some milliseconds later, gVisor
never. Until then a script can read the sockets' names and lacks the files' space.
"""

import os
import time

from . import integrity

_PAUSE_SEC = 0.0005
_LIST_BYTES = 1 << 20
_SUM_BYTES = 64


class Uncollected:
    """Counts sockets of the network namespace, and blocks and inodes of the writable roots, and compares with the counts before
    the first run."""

    def __init__(self, roots, sockets=None):
        # On gVisor, which has no net/sockstat, the sockets of AF_UNIX. A cycle is made of them.
        sums = None if sockets else integrity.open_proc("net/sockstat")
        self._file = sums or sockets or integrity.open_proc("net/unix")
        # A buffer for a list takes longer to make than the sum to read.
        self._max_bytes = _LIST_BYTES if sums is None else _SUM_BYTES
        self._roots = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for root in roots]
        self._sockets, self._space = self._count_sockets(), self._read_space()

    def is_gone(self, budget_sec, closed_sockets=0):
        """Waits until no more is in use than before the first run. For sockets the bound is `closed_sockets` lower. Returns False
        if that takes longer than the budget."""
        deadline = time.monotonic() + budget_sec
        while self._count_sockets() > self._sockets - closed_sockets or self._takes_space():
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SEC)
        return True

    def _count_sockets(self):
        """Reads `sockets: used NUMBER`, the first line, or counts the lines of a list."""
        text = os.pread(self._file, self._max_bytes, 0)
        return int(text.split(None, 3)[2]) if text.startswith(b"sockets: used ") else text.count(b"\n")

    def _takes_space(self):
        return any(now > normal for now, normal in zip(self._read_space(), self._space))

    def _read_space(self):
        found = [os.fstatvfs(root) for root in self._roots]
        return [count for space in found for count in (space.f_blocks - space.f_bfree, space.f_files - space.f_ffree)]
