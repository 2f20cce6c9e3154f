"""The broker's view of the zygote and of the child that waits for its script."""

import errno
import json
import os
import socket
import struct
import time

from . import integrity

ANSWER_SEC = 0.5  # how long the zygote may take to answer
FORK_SEC = 5.0  # the same for a new child
LOOKS, LOOK_AGAIN_SEC = 8, 0.00006  # at a process that said that it is done


class Zygote:
    """The process that forks. Its answers come one at a time, each a number of four bytes."""

    def __init__(self, pid, control_fd):
        self.pid = pid
        self.socket = socket.socket(fileno=control_fd)
        self.alive = True
        self.kills_at_once = True  # one kill reaches all there is
        self.answer_due = None  # when it must have answered

    def first_words(self):
        """What it loaded. Raises RuntimeError when it ended instead."""
        answer = self.socket.recv(1 << 20)
        if not answer:
            raise RuntimeError("the zygote ended while it started")
        return json.loads(answer)

    def ask_for(self, spare):
        """Has it reap its last child, if that is not done, and fork one with the spare's descriptors; it answers the
        new one's pid. Raises OSError when it is gone."""
        socket.send_fds(self.socket, [b"S"], spare.child_fds())
        spare.given_away()
        self.answer_due = time.monotonic() + FORK_SEC

    def ask_for_a_sign(self):
        """Has it answer at once, which a signal that came before does not let it. Nothing is due until the sign is
        expected. Raises OSError when it is gone."""
        self.socket.send(b"A")

    def expect_sign(self):
        """From now on the sign is due."""
        self.answer_due = time.monotonic() + ANSWER_SEC

    def ask_to_reap(self):
        """Has it take the status of its dead child; it answers the status. Raises OSError when it is gone."""
        self.socket.send(b"R")
        self.answer_due = time.monotonic() + ANSWER_SEC

    def ask_to_kill(self):
        """Has it kill everything but itself and PID 1; it answers the status of its child. Raises OSError when it is
        gone."""
        self.socket.send(b"K" if self.kills_at_once else b"L")
        self.answer_due = time.monotonic() + ANSWER_SEC

    def answer(self):
        """The number that it answered, None when there is none yet. Raises EOFError when it is gone."""
        try:
            answer = self.socket.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            answer = b""
        if len(answer) != 4:
            raise EOFError
        self.answer_due = None
        return struct.unpack("=i", answer)[0]

    def answers(self):
        """Whether it lives and is not stopped."""
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
        self.socket, self._child_socket = socket.socketpair()
        self.out_fd, self._child_out = os.pipe()
        self.err_fd, self._child_err = os.pipe()
        self.pid = self.pid_fd = self.stat_fd = None
        self.requests = 0  # that it was given
        for fd in (self.socket.fileno(), self.out_fd, self.err_fd):
            os.set_blocking(fd, False)

    def forked_as(self, pid):
        """The zygote made the child. It stays a zombie until it is asked for, so its pid is nobody else's."""
        self.pid = pid
        self.stat_fd = integrity.open_proc(f"{pid}/stat")
        try:
            self.pid_fd = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:  # gVisor has none: the broker then looks at the process itself
                raise

    def child_fds(self):
        """Frame socket, stdout and stderr."""
        return [self._child_socket.fileno(), self._child_out, self._child_err]

    def given_away(self):
        """The child has its ends."""
        self._child_socket.close()
        os.close(self._child_out)
        os.close(self._child_err)

    def no_more_requests(self):
        """It ends when it has done what it was given."""
        self.socket.shutdown(socket.SHUT_WR)

    def exit_status(self):
        """How it ended, as wait(2) gives it, before anybody reaped it; None while it can still run."""
        return integrity.exit_status(self.stat_fd)

    def has_ended(self):
        """Whether it is a zombie, or gone: for kernels that have no descriptor to tell."""
        return integrity.has_ended(self.pid)

    def ends_at_once(self):
        """Looks for its end while that is usually near: the kernel tells of it when all memory is back.

        Asleep between two looks, because the child's last word woke the broker on the child's own processor.
        """
        for _ in range(LOOKS):
            time.sleep(LOOK_AGAIN_SEC)
            if integrity.exit_status(self.stat_fd) is not None:
                return True
        return False

    def close(self):
        """Gives back the broker's ends."""
        self.socket.close()
        for fd in (self.out_fd, self.err_fd, self.pid_fd, self.stat_fd):
            if fd is not None:
                os.close(fd)
