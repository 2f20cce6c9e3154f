"""The broker's handle on a process that waits for an activity, and on the process that ends the activity: its keeper, or the
zygote in a workspace that runs one activity at a time."""

import os
import select
import socket
import struct

from . import integrity
from .processes import Spare

ANSWER = struct.Struct("=i?")
# The reasons why an activity has no process.
NO_PROCESS = (
    "no process could be created in the sandbox: its limit of processes is reached; end other activities or raise limits.pids"
)
KILLED = "the process for this activity was killed, for example by another activity of the workspace; try again"


class ActivitySpare(Spare):
    """A process that waits to become a script or a program."""

    keeper_pid = None
    has_domain = False  # True if a Landlock domain confines its signals to its own processes

    def become(self, kind, fds=()):
        """Tells the process to become a script (`R`), a program (`P`) or a session (`C`). Its request follows."""
        try:
            if fds:
                socket.send_fds(self.socket, [kind], list(fds))
            else:
                self.socket.send(kind)
        except OSError:  # it was killed; its end is reported separately
            pass


class LoneSpare(ActivitySpare):
    """A spare of a workspace that runs one activity at a time. The zygote kills every process but itself and the broker."""

    def __init__(self, zygote, reaper):
        super().__init__()
        self._zygote, self._reaper = zygote, reaper
        self._give_up_at = None
        self.on_answer = None

    def watch(self, _watcher, on_answer):
        """Registers `on_answer()`, for when the zygote has killed everything or is gone."""
        self.on_answer = on_answer

    def forget(self, _watcher):
        """Stops watching."""
        self.on_answer = None

    def ask_to_end(self, give_up_at):
        """Asks the zygote to kill everything. Raises OSError if it is gone."""
        self._give_up_at = give_up_at
        self._reaper.kill_group(self.pid)
        self._zygote.ask_to_kill(at_once=False)

    def is_gone(self):
        """Always False, because the end of the zygote ends the sandbox."""
        return False

    def has_answered(self):
        """True if an answer of the zygote, or the end of its socket, can be read."""
        return _is_readable(self._zygote.socket)

    def read_answer(self):
        """Returns the status of the process, and True if no other process is left. Returns None if the zygote is gone."""
        try:
            status = self._zygote.read_answer()
        except EOFError:
            return None
        return None if status is None else (status, self._reaper.confirm_death(self._give_up_at))


class KeptSpare(ActivitySpare):
    """A spare in a keeper, which owns all processes of its activity."""

    def __init__(self):
        super().__init__()
        self.control, self._keeper_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def child_fds(self):
        """Returns the keeper's and the child's ends: control socket, frame socket, stdout and stderr."""
        return [self._keeper_end.fileno(), *super().child_fds()]

    def close_child_ends(self):
        """Closes these ends, once the keeper has copies of them."""
        self._keeper_end.close()
        super().close_child_ends()

    def take_first(self):
        """Reads the pid of the process from its keeper. Returns None, or the reason why the process is missing."""
        answer = self.read_answer()
        if answer is None:
            return KILLED
        number, self.has_domain = answer
        if number <= 0:
            return NO_PROCESS
        self.pid = number
        try:
            self.pid_fd = os.pidfd_open(number)
        except ProcessLookupError:  # its keeper has reaped it
            return KILLED
        return None

    def read_answer(self):
        """Returns the number and the flag that the keeper sent; None if it is gone."""
        try:
            answer = self.control.recv(16)
        except OSError:
            return None
        return ANSWER.unpack(answer) if len(answer) == ANSWER.size else None

    def ask_to_end_others(self, order):
        """Asks the keeper to kill the processes that the order selects. Raises OSError if it is gone."""
        self.control.send(b"R" + order)

    def is_gone(self):
        """True if the keeper has ended and all its answers were read."""
        try:
            return not self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def read_ended(self):
        """Returns the answer to `ask_to_end_others`: the status of the old first process, True if only the kept processes are left,
        and the names of other ended processes. Returns None if the keeper is gone."""
        try:
            answer = self.control.recv(1 << 14)
        except OSError:
            return None
        if len(answer) < ANSWER.size:
            return None
        names = answer[ANSWER.size :].split(b"\0") if len(answer) > ANSWER.size else []
        return (*ANSWER.unpack_from(answer), [name.decode(errors="replace") for name in names])

    def has_answered(self):
        """True if an answer of the keeper, or the end of its socket, can be read."""
        return _is_readable(self.control)

    def watch(self, watcher, on_answer):
        """Registers `on_answer()`, for when the keeper answers or is gone."""
        watcher.watch_read(self.control.fileno(), lambda _event: on_answer())

    def forget(self, watcher):
        """Stops watching."""
        watcher.forget(self.control.fileno())

    def ask_to_end(self, _give_up_at=None):
        """Asks the keeper to kill all processes of its activity. The answer holds the status of the first process, and True if
        none is left. Raises OSError if the keeper is gone."""
        self.control.send(b"K")

    def ask_to_signal(self, number, group):
        """Asks the keeper to send a signal to a process group; `group` 0 is the group of the first process."""
        self.control.send(b"T" + struct.pack("=ii", number, group))

    def close(self):
        """Closes the broker's ends."""
        super().close()
        self.control.close()


def _is_readable(end):
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(0))


def is_dead(pid):
    """True if a keeper has ended, reaped or not. Its children then belong to PID 1."""
    return (integrity.status_field(pid, "State") or "Z")[0] in "ZX"


def find_orphans(broker_pid, zygote_pid):
    """Returns the pids of processes whose keeper is gone, which are now children of PID 1."""
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and int(name) != zygote_pid and integrity.status_field(name, "PPid") == str(broker_pid)
    ]
