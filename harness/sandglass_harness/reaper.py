"""Death below PID 1: taking the status of what ended, and making sure that nothing is left."""

import os
import signal
import time

DEATH_SEC = 0.6  # how long killed processes may take to be gone
LOST_SEC = 0.2  # the same when the zygote had to be killed, too


class Reaper:
    """Reaps orphans and the zygote, and remembers what became of a script's process that lost its parent."""

    def __init__(self, zygote):
        self._zygote = zygote
        self._statuses = {}
        self.kills_at_once = True  # one kill reaches all there is

    def reap(self):
        """Takes the status of every process below the broker that ended."""
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
        """Between runs: statuses of orphans are nobody's business."""
        self._statuses.clear()

    def status_of(self, pid):
        """Of a process that ended as an orphan; as if killed when it is not known."""
        return self._statuses.get(pid, signal.SIGKILL)

    def kill_group(self, pid):
        """Most of what a script started is in its own process group. Behind dozens of busy processes the zygote would
        wait for its turn to kill them: up to a second in gVisor, whose threads all have the same priority."""
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill_everything(self):
        """One pass of the kernel over the namespace, the zygote included: for a zygote that does not answer."""
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._zygote.alive = False

    def confirm_death(self):
        """Waits until no process but broker and zygote is left in the namespace. False when that takes too long."""
        # Without the zygote the sandbox is given up, and the host waits: its end kills what is left.
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
