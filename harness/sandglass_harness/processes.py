"""The broker's view of the zygote and of the child that waits for its script."""

import errno
import json
import os
import socket

from . import integrity


class Zygote:
    """The process that forks. Its answers come one at a time, each a number of four bytes."""

    def __init__(self, pid, control_fd):
        self.pid = pid
        self.socket = socket.socket(fileno=control_fd)
        self.alive = True
        self.kills_at_once = True  # one kill reaches all there is

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

    def ask_for_a_sign(self):
        """Has it answer at once, which a signal that came before does not let it. Raises OSError when it is gone."""
        self.socket.send(b"A")

    def ask_to_reap(self):
        """Has it take the status of its dead child; it answers the status."""
        self.socket.send(b"R")

    def ask_to_kill(self):
        """Has it kill everything but itself and PID 1; it answers the status of its child."""
        self.socket.send(b"K" if self.kills_at_once else b"L")

    def answer(self):
        """Bytes of an answer, b"" at the end, None when there is none yet."""
        try:
            return self.socket.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return b""

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

    def close(self):
        """Gives back the broker's ends."""
        self.socket.close()
        for fd in (self.out_fd, self.err_fd, self.pid_fd, self.stat_fd):
            if fd is not None:
                os.close(fd)
