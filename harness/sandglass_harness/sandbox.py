"""What outlives the runs of a sandbox, and what it was before the first of them."""

import os

from . import integrity
from .control_group import MemoryKills
from .intake import WIPE_SEC
from .reaper import Reaper
from .scratch import Roots, Terminals
from .syscalls import PR_SET_TIMERSLACK, prctl


class Sandbox:
    """The zygote, the writable directories and the kernel's counters; whether a run left them as they were."""

    def __init__(self, config, zygote, channel_fds):
        leaked_fds = _open_fds_above(2) - {*channel_fds, zygote.socket.fileno()}
        self.config = config
        self.zygote = zygote
        self.reaper = Reaper(zygote)
        self.roots = Roots(config["scratch"])
        self.terminals = Terminals()
        self.memory_kills = MemoryKills()
        self.sees_ends = False  # how a process ended is told before anybody reaps it, and that nothing else was started
        self._leaked_fds = len(leaked_fds)
        # Not in gVisor: a child of PID 1's own would pass for something that a preloaded module left.
        self._tells_exit_status = not config.get("sealed") and integrity.tells_exit_status()

    def take_stock(self, spare_pid):
        """Remembers what is normal, once the first spare is there. Returns what is in force, as `ready` tells it."""
        self._pids = [os.getpid(), self.zygote.pid]
        self._normal = integrity.snapshot(self._pids)
        self._loadavg = integrity.open_proc("loadavg")
        self._last_pid_moves = integrity.last_pid(self._loadavg) == spare_pid
        # Only the last pid tells of threads, too.
        self.sees_ends = self._tells_exit_status and self._last_pid_moves
        if self.sees_ends:
            prctl(PR_SET_TIMERSLACK, 1)  # ns; by default a sleep takes 50 us more
        checks = integrity.self_check(self.zygote.pid, self.config["scratch"], self._leaked_fds)
        checks["last_pid_moves"] = self._last_pid_moves
        self.zygote.kills_at_once = self.reaper.kills_at_once = not checks["gvisor"]
        return checks

    def was_alone(self, pid):
        """Whether nothing is left that this process started; it is a zombie itself."""
        if self._last_pid_moves:  # it keeps its pid, so the last one can only be its own when nothing else was started
            return integrity.last_pid(self._loadavg) == pid
        return integrity.nobody_but([*self._pids, pid])

    def clean(self):
        """Wipes the directories. True when nothing is left there, and broker and zygote are as they were."""
        wiped = self.roots.wipe(WIPE_SEC) and self.terminals.restore(WIPE_SEC)
        return wiped and self.zygote.alive and integrity.snapshot(self._pids) == self._normal


def _open_fds_above(lowest):
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))  # the descriptor of the listing itself is gone by now
        except OSError:
            continue
        if int(name) > lowest:
            found.add(int(name))
    return found
