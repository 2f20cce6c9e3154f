"""The parts of a sandbox that outlive its runs, and their state before the first one."""

import os

from ..libc import PR_SET_TIMERSLACK, prctl, trim_heap
from . import integrity
from .control_group import MemoryKills
from .cpu_time import CpuTime
from .intake import WIPE_SEC
from .network import NetworkCounters
from .reaper import Reaper
from .scratch import Roots, Terminals
from .uncollected import Uncollected


class Sandbox:
    """The zygote, the writable directories and the kernel's counters. Checks that a run left them unchanged."""

    def __init__(self, config, zygote, channel_fds):
        leaked_fds = _open_fds_above(2) - {*channel_fds, zygote.socket.fileno()}
        self.config = config
        self.zygote = zygote
        self.reaper = Reaper(zygote)
        self.roots = Roots(config["scratch"])
        self.terminals = Terminals()
        self.network = NetworkCounters()
        self.memory_kills = MemoryKills()
        self.cpu_time = self._uncollected = self._growth = self._zygote_growth = None  # before the first spare
        self._has_grown = False
        self.shows_ends = False  # True if the kernel shows the status of an unreaped process, and whether it started others
        self._leaked_fds = len(leaked_fds)
        # Not in gVisor, where a child of PID 1 would look like a process that a preloaded module left.
        self._shows_exit_status = not config.get("sealed") and integrity.shows_exit_status()

    def record_normal_state(self, spare_pid):
        """Records the normal state, once the first spare exists. Returns the checks for the frame `ready`."""
        self._pids = [os.getpid(), self.zygote.pid]
        self._limits = integrity.ProcessLimits(self._pids)
        self._normal = self._limits.read()
        self._growth, self._zygote_growth = (integrity.MemoryGrowth(pid) for pid in self._pids)
        self._uncollected = Uncollected(self.config["scratch"])
        self._loadavg = integrity.open_proc("loadavg")
        self._last_pid_moves = integrity.last_pid(self._loadavg) == spare_pid
        # Only the last pid reveals threads as well.
        self.shows_ends = self._shows_exit_status and self._last_pid_moves
        if self.shows_ends:
            prctl(PR_SET_TIMERSLACK, 1)  # ns; by default a sleep takes 50 us more
        checks = integrity.self_check(self.zygote.pid, self.config["scratch"], self._leaked_fds)
        self.cpu_time = CpuTime(self.zygote.pid, is_exact=not checks["gvisor"])
        checks["last_pid_moves"] = self._last_pid_moves
        self.roots.shows_changes = self.zygote.kills_at_once = self.reaper.kills_at_once = not checks["gvisor"]
        return checks

    def left_no_process(self, pid):
        """True if no process that `pid`, now a zombie, has started is left."""
        if self._last_pid_moves:  # the last pid equals its own only if it started nothing, because zombies keep their pids
            return integrity.last_pid(self._loadavg) == pid
        return integrity.has_only_processes([*self._pids, pid])

    def is_collected(self):
        """True once the kernel has freed the sockets and files of earlier runs. Called when the next spare is ready and not in
        clean(), during which the process of the run may still be exiting."""
        return self._uncollected is None or self._uncollected.is_gone(WIPE_SEC)

    def note_resources(self):
        """Notes the CPU time, and whether the zygote has grown for good; a sandbox that has grown ends with its next run. Called when the
        next spare is ready."""
        if self._zygote_growth is None:
            return
        self.cpu_time.note()
        if self._zygote_growth.is_large():
            self._has_grown = True

    def note_growth(self):
        """Notes whether the broker has grown for good. Called between two runs, when it holds neither the last one nor a part of the next
        one: a large request is 20 MiB and more."""
        if self._growth is not None and self._growth.is_large():
            trim_heap()
            self._has_grown = self._has_grown or self._growth.is_large()

    def clean(self, closed_sockets=0):
        """Wipes the directories. Returns True if they are empty and their space is free, no run has used the network, and broker
        and zygote are unchanged and had not grown before the run. `closed_sockets` is the number of sockets closed since
        record_normal_state()."""
        wiped = self.roots.wipe(WIPE_SEC) and self.terminals.restore(WIPE_SEC)
        wiped = wiped and self._uncollected.is_gone(WIPE_SEC, closed_sockets)
        unchanged = self.network.are_as_before() and self._limits.read() == self._normal
        return wiped and self.zygote.alive and unchanged and not self._has_grown


def _open_fds_above(lowest):
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))  # the descriptor of the listing is closed by now
        except OSError:
            continue
        if int(name) > lowest:
            found.add(int(name))
    return found
