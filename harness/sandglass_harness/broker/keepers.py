"""The broker's view of a process that waits for an activity, and of the process that ends the activity: its keeper, or, where
activities run one at a time, the zygote."""

import os
import select
import socket
import struct

from . import integrity
from .processes import Spare

ANSWER = struct.Struct("=i?")
# Why there is no process for an activity.
NO_PROCESS = "no process could be made in the sandbox: its limit of processes is reached"
KILLED = "the process that was made for it was killed, as by another activity of the workspace; try again"


class ActivitySpare(Spare):
    """A process that waits to become a script or a program."""

    keeper_pid = None
    has_domain = False  # the kernel keeps its signals within its own processes

    def become(self, kind, fds=()):
        """Tells the process what it becomes, `R`(un) or `P`(rogram). Its request follows."""
        try:
            if fds:
                socket.send_fds(self.socket, [kind], list(fds))
            else:
                self.socket.send(kind)
        except OSError:  # it has been killed, as its end will say
            pass


class LoneSpare(ActivitySpare):
    """A spare where activities run one at a time. The zygote kills every process but itself and the broker."""

    def __init__(self, zygote, reaper):
        super().__init__()
        self._zygote, self._reaper = zygote, reaper
        self._give_up_at = None
        self.on_answer = None

    def watch(self, _watcher, on_answer):
        """Calls `on_answer()` when the zygote has killed everything, or is gone."""
        self.on_answer = on_answer

    def forget(self, _watcher):
        """Stops watching."""
        self.on_answer = None

    def ask_to_end(self, give_up_at):
        """Asks the zygote to kill everything. Raises OSError when it is gone."""
        self._give_up_at = give_up_at
        self._reaper.kill_group(self.pid)
        self._zygote.ask_to_kill(at_once=False)

    def is_gone(self):
        """False: the end of the zygote ends the sandbox."""
        return False

    def has_answered(self):
        """True if the zygote's answer, or its end, waits to be read."""
        return _is_readable(self._zygote.socket)

    def read_answer(self):
        """Returns the status of the process, and whether no other is left. None when the zygote is gone."""
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
        """Returns the ends of keeper and child: control socket, frame socket, stdout and stderr."""
        return [self._keeper_end.fileno(), *super().child_fds()]

    def close_child_ends(self):
        """Closes these ends. The keeper has copies of them by then."""
        self._keeper_end.close()
        super().close_child_ends()

    def take_first(self):
        """Reads the pid of the process from its keeper. Returns None, or the reason why there is no process."""
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
        """Returns the number and the flag that the keeper sent; None when it is gone."""
        try:
            answer = self.control.recv(16)
        except OSError:
            return None
        return ANSWER.unpack(answer) if len(answer) == ANSWER.size else None

    def ask_to_end_others(self, order):
        """Asks the keeper to kill some of its processes, as the order says. Raises OSError when it is gone."""
        self.control.send(b"R" + order)

    def is_gone(self):
        """True if the keeper has ended, and everything that it answered was read."""
        try:
            return not self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def read_ended(self):
        """Returns the answer to `ask_to_end_others`: the status of the old first process, True if only the kept processes are left, and
        the names of other ended processes. None when the keeper is gone."""
        try:
            answer = self.control.recv(1 << 14)
        except OSError:
            return None
        if len(answer) < ANSWER.size:
            return None
        names = answer[ANSWER.size :].split(b"\0") if len(answer) > ANSWER.size else []
        return (*ANSWER.unpack_from(answer), [name.decode(errors="replace") for name in names])

    def has_answered(self):
        """True if an answer of the keeper, or its end, waits to be read."""
        return _is_readable(self.control)

    def watch(self, watcher, on_answer):
        """Calls `on_answer()` when the keeper answers, or is gone."""
        watcher.watch_read(self.control.fileno(), lambda _event: on_answer())

    def forget(self, watcher):
        """Stops watching."""
        watcher.forget(self.control.fileno())

    def ask_to_end(self, _give_up_at=None):
        """Asks the keeper to kill all processes of its activity. The answer is the status of the first process, and True if none is
        left. Raises OSError when the keeper is gone."""
        self.control.send(b"K")

    def ask_to_signal(self, number, group):
        """Asks the keeper to send a signal to a process group, or to that of the first process if `group` is 0."""
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
    """Returns the processes whose keeper is gone: they are children of PID 1."""
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and int(name) != zygote_pid and integrity.status_field(name, "PPid") == str(broker_pid)
    ]
