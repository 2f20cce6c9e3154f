"""The broker's handle on a process of a session that waits for commands: the head, which runs cells, or a copy."""

import array
import json
import os
import signal
import socket
import struct

from . import integrity

MAX_MESSAGE = 192 << 10
_BUFFER = bytearray(MAX_MESSAGE)  # shared, because its allocation takes longer than reading a message
_CREDENTIALS = struct.Struct("=iII")


class SessionProcess:
    """One process: its socket for commands, its output and, during a cell, the socket for the cell's frames."""

    stat_fd = None  # this process is not polled by /proc/PID/stat

    def __init__(self, out_fd=None, err_fd=None):
        self.control, self._control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # The kernel then tells which process sent a message.
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.control.setblocking(False)
        self._ends = []
        self.out_fd = self._pipe() if out_fd is None else out_fd
        self.err_fd = self._pipe() if err_fd is None else err_fd
        self.socket = None
        self._next = None  # both ends of the socket of the next cell
        self.pid = self.pid_fd = None

    def _pipe(self):
        read, write = os.pipe()
        os.set_blocking(read, False)
        self._ends.append(write)
        return read

    @property
    def ends(self):
        """The process's ends: of the socket for commands and of its new pipes."""
        return [self._control_end.fileno(), *self._ends]

    def close_ends(self):
        """Closes these ends, once the process has them."""
        self._control_end.close()
        for fd in self._ends:
            os.close(fd)
        self._ends.clear()

    def tell(self, kind, content=None, fds=()):
        """Sends it a command. A process that does not read misses the deadline for its answer."""
        message = kind if content is None else kind + json.dumps(content).encode()
        try:
            if fds:
                socket.send_fds(self.control, [message], list(fds))
            else:
                self.control.send(message)
        except OSError:
            pass

    def make_cell_socket(self):
        """Creates the socket of the next cell, ahead of its request."""
        if self._next is None:
            self._next = socket.socketpair()
            self._next[0].setblocking(False)

    def begin_cell(self):
        """Sends it a new socket for the request and the frames of a cell."""
        self.make_cell_socket()
        (self.socket, end), self._next = self._next, None
        self.tell(b"E", fds=[end.fileno()])
        end.close()

    def take_cell_socket(self):
        """Hands the socket of the cell over to the caller."""
        taken, self.socket = self.socket, None
        return taken

    def end_cell(self):
        """Closes the socket of the cell, if it is open."""
        if self.socket is not None:
            self.take_cell_socket().close()

    def read(self):
        """Returns (kind, content, pid of the sender) of the next message; None if there is none yet, and (b"", None, 0) at the end.
        The script may have forged kind and content; the pid comes from the kernel."""
        size = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(16)
        try:
            length, ancillary, _, _ = self.control.recvmsg_into([_BUFFER], size)
        except BlockingIOError:
            return None
        except OSError:
            return b"", None, 0
        message, pid = bytes(memoryview(_BUFFER)[:length]), 0
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
                pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
            elif level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                for fd in fds:
                    os.close(fd)
        try:
            content = json.loads(message[1:]) if len(message) > 1 else None
        except (ValueError, RecursionError):
            content = None
        return message[:1], content, pid

    def has_message(self):
        """True if a message of it can be read. False at the end of its messages."""
        try:
            return bool(self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def is_alive(self):
        """True if it runs, according to its pidfd or, on a kernel without pidfds, /proc."""
        if self.pid_fd is None:
            return self.pid is not None and not integrity.has_ended(self.pid)
        try:
            signal.pidfd_send_signal(self.pid_fd, 0)
        except OSError:
            return False
        return True

    def signal(self, number):
        """Sends it a signal, and never to a process that has reused its pid."""
        try:
            if self.pid_fd is not None:
                signal.pidfd_send_signal(self.pid_fd, number)
            elif self.pid is not None:  # the zygote does not reap it before the session ends
                os.kill(self.pid, number)
        except OSError:
            pass

    def has_ended(self):
        """True if it has ended."""
        return not self.is_alive()

    def close(self):
        """Closes the broker's ends."""
        self.close_ends()
        self.end_cell()
        for end in self._next or ():
            end.close()
        self._next = None
        self.control.close()
        for fd in (self.out_fd, self.err_fd, self.pid_fd):
            if fd is not None:
                os.close(fd)
        self.out_fd = self.err_fd = self.pid = self.pid_fd = None
