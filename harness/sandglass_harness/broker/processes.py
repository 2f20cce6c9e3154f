"""The broker's handles on the zygote, and on the child that waits for its script."""

import _socket
import array
import errno
import json
import os
import struct
import time

from . import integrity

ANSWER_SEC = 0.5  # time for the zygote to answer
FORK_SEC = 5.0  # time for the zygote to fork a child
SOCKETS_OF_SPARE = 2  # the ends of its frame socket
POLLS, POLL_PAUSE_SEC = 8, 0.00006  # for a process that reported its end
END_POLL_SEC = 0.02  # between two polls of a process without a pidfd (gVisor)


class Zygote:
    """The process that forks. Each of its answers is a number of four bytes; at most one is due."""

    def __init__(self, pid, control_fd):
        self.pid = pid
        self.socket = _socket.socket(fileno=control_fd)  # because `socket` takes 6 ms to load
        self.alive = True
        self.kills_at_once = True  # one kill reaches every process
        self.answer_due = None  # the deadline of its next answer, if any

    def read_report(self):
        """Returns the report of what it loaded. Raises RuntimeError if it ended instead."""
        answer = self.socket.recv(1 << 20)
        if not answer:
            raise RuntimeError("the zygote ended while it started")
        return json.loads(answer)

    def ask_to_fork(self, spare):
        """Asks the zygote to reap its last child, if it has not yet, and to fork one with the descriptors of `spare`. It answers
        with the new pid. Raises OSError if it is gone."""
        rights = array.array("i", spare.child_fds())
        self.socket.sendmsg([b"S"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        spare.close_child_ends()
        self.answer_due = time.monotonic() + FORK_SEC

    def ping(self):
        """Asks for an answer, to detect a zygote that a script has stopped or killed. The time limit starts with expect_pong().
        Raises OSError if it is gone."""
        self.socket.send(b"A")

    def expect_pong(self):
        """Starts the time limit for the answer to ping()."""
        self.answer_due = time.monotonic() + ANSWER_SEC

    def ask_to_reap(self):
        """Asks the zygote to reap its dead child. It answers with the status. Raises OSError if it is gone."""
        self.socket.send(b"R")
        self.answer_due = time.monotonic() + ANSWER_SEC

    def ask_to_kill(self, at_once=None):
        """Asks the zygote to kill every process but itself and PID 1, repeatedly unless one kill reaches all. It answers with the
        status of its child. Raises OSError if it is gone."""
        self.socket.send(b"K" if (self.kills_at_once if at_once is None else at_once) else b"L")
        self.answer_due = time.monotonic() + ANSWER_SEC

    def read_answer(self):
        """Returns the number in its answer, or None if it has not answered yet. Raises EOFError if it is gone."""
        try:
            answer = self.socket.recv(16, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            answer = b""
        if len(answer) != 4:
            raise EOFError
        self.answer_due = None
        return struct.unpack("=i", answer)[0]

    def is_running(self):
        """True if it has neither ended nor been stopped."""
        if not self.alive:
            return False
        try:
            found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return False
        return found is None


class Spare:
    """A child that waits for its script, and the broker's ends of its descriptors."""

    def __init__(self):
        self.socket, self._child_socket = _socket.socketpair()
        self.out_fd, self._child_out = os.pipe()
        self.err_fd, self._child_err = os.pipe()
        self.pid = self.pid_fd = self.stat_fd = None
        self.requests = 0  # sent to it
        for fd in (self.socket.fileno(), self.out_fd, self.err_fd):
            os.set_blocking(fd, False)

    def on_fork(self, pid):
        """Sets the pid of the child that the zygote forked. The zygote reaps it late, so the pid is not reused meanwhile."""
        self.pid = pid
        self.stat_fd = integrity.open_proc(f"{pid}/stat")
        try:
            self.pid_fd = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:  # gVisor has no pidfd, so the broker polls the process
                raise

    def child_fds(self):
        """Returns the child's ends: frame socket, stdout and stderr."""
        return [self._child_socket.fileno(), self._child_out, self._child_err]

    def close_child_ends(self):
        """Closes the child's ends, once the child has them."""
        self._child_socket.close()
        os.close(self._child_out)
        os.close(self._child_err)

    def end_requests(self):
        """Tells it to end after its current request."""
        self.socket.shutdown(_socket.SHUT_WR)

    def exit_status(self):
        """Returns its wait(2) status before it is reaped; None while it can still run."""
        return integrity.exit_status(self.stat_fd)

    def has_ended(self):
        """True if it is a zombie or gone. For kernels without pidfd."""
        return integrity.has_ended(self.pid)

    def ends_soon(self):
        """Polls for its end for a short time, because the pidfd reports it only after all memory is freed.

        Sleeps between two polls, because the child's last frame woke the broker on the child's own CPU.
        """
        for _ in range(POLLS):
            time.sleep(POLL_PAUSE_SEC)
            if integrity.exit_status(self.stat_fd) is not None:
                return True
        return False

    def close(self):
        """Closes the broker's ends."""
        self.socket.close()
        for fd in (self.out_fd, self.err_fd, self.pid_fd, self.stat_fd):
            if fd is not None:
                os.close(fd)


class EndPoll:
    """Polls a process without a pidfd for its end."""

    def __init__(self, spare, now):
        self.due = None if spare.pid_fd is not None else now + END_POLL_SEC
        self._spare = spare
        self._pause_sec = END_POLL_SEC

    def poll_soon(self):
        """Schedules the next poll at once, because the process seems to be ending."""
        if self.due is not None:
            self.due, self._pause_sec = 0, END_POLL_SEC / 64

    def finds_end(self, now):
        """Polls once, if a poll is due. Returns True if the process has ended. The pause grows, so that a process that only seems
        to be ending costs little."""
        if self.due is None or now < self.due:
            return False
        if self._spare.has_ended():
            return True
        self.due, self._pause_sec = now + self._pause_sec, min(self._pause_sec * 2, END_POLL_SEC)
        return False
