"""Reaps the processes below PID 1, and confirms that none is left."""

import os
import signal
import time

DEATH_SEC = 0.6  # time for killed processes to be gone
LOST_SEC = 0.2  # the same if the zygote was killed as well


class Reaper:
    """Reaps orphans and the zygote, and keeps the status of a script's process that lost its parent."""

    def __init__(self, zygote):
        self._zygote = zygote
        self._statuses = {}
        self.kills_at_once = True  # one kill reaches every process

    def reap(self):
        """Reaps every ended child of the broker."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._zygote.pid:
                self._zygote.alive = False
            self._statuses[pid] = status

    def forget(self):
        """Drops the statuses of orphans, between runs."""
        self._statuses.clear()

    def status_of(self, pid):
        """Returns the status of a process that ended as an orphan; SIGKILL if it is unknown."""
        return self._statuses.get(pid, signal.SIGKILL)

    def kill_group(self, pid):
        """Kills the process group of a script, which holds most of what it started. Among dozens of busy processes the
        zygote would be scheduled too late: after up to a second in gVisor, whose threads all have the same priority."""
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill_everything(self):
        """Kills every process of the namespace, including a zygote that does not answer."""
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._zygote.alive = False

    def confirm_death(self, deadline=None):
        """Waits until only broker and zygote are left in the namespace. Returns False if that takes too long; `deadline` replaces
        the default limit."""
        # Without the zygote the sandbox ends, and the host waits for that. The end of PID 1 kills the rest.
        if deadline is None:
            deadline = time.monotonic() + (DEATH_SEC if self._zygote.alive else LOST_SEC)
        spared = {str(os.getpid())}
        if self._zygote.alive:
            spared.add(str(self._zygote.pid))
        while True:
            self.reap()
            if not any(name.isdigit() and name not in spared for name in os.listdir("/proc")):
                return True
            if time.monotonic() > deadline:
                return False
            if not self._zygote.alive and not self.kills_at_once:
                self.kill_everything()
            time.sleep(0.0005)
