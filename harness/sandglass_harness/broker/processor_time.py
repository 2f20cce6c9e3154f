"""The CPU time of a script and of all processes that it started."""

import os

TICKS = os.sysconf("SC_CLK_TCK")
STATE, PARENT, USER, CHILDREN_USER, CHILDREN_SYSTEM = 0, 1, 11, 13, 14  # indexes in /proc/PID/stat, after the name


class ProcessorTime:
    """Measures the CPU time of all processes except those in `excluded`. `own` is the pid of the script's own process. With
    `below`, only descendants of that process count.

    The kernel forgets the time of a process that nobody waits for. So any other process that runs at a measurement counts as
    if it had run since the previous one.
    """

    def __init__(self, excluded, own, root="/proc", below=None):
        self._root = root
        self._excluded = {str(pid) for pid in excluded}
        self._own = str(own)
        self._below = None if below is None else str(below)
        self._seen = {}

    def measure(self, elapsed):
        """Returns the CPU seconds used since the last call; at least `elapsed` if a process other than the script's own is
        running."""
        seen, ticks, busy = {}, 0, False
        for name, fields in self._find_counted():
            seen[name] = sum(map(int, fields[USER : CHILDREN_SYSTEM + 1]))
            ticks += max(0, seen[name] - self._seen.get(name, 0))
            busy = busy or (fields[STATE] == b"R" and name != self._own)
        self._seen = seen
        used = ticks / TICKS
        return max(used, elapsed) if busy else used

    def _find_counted(self):
        names = [name for name in os.listdir(self._root) if name.isdigit() and name not in self._excluded]
        found = {name: fields for name in names if (fields := _fields_of(f"{self._root}/{name}/stat")) is not None}
        if self._below is None:
            return list(found.items())
        children = {}
        for name, fields in found.items():
            children.setdefault(fields[PARENT].decode(), []).append(name)
        counted, parents = [], [self._below]
        while parents:
            below = children.pop(parents.pop(), ())
            counted += [(name, found[name]) for name in below]
            parents += below
        return counted


def _fields_of(path):
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(1024).rpartition(b")")[2].split()  # a name may contain parentheses
    except OSError:
        return None  # the process has ended meanwhile
