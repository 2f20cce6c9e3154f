"""Connections to the sandbox's own loopback."""

import errno
import os
import socket

from .activity import Activity
from .input_outbox import InputOutbox
from .sources import Source


class Connection(Activity):
    """A connection to a port of the sandbox's own loopback."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self._socket = self._out = self._source = None

    def begin(self):
        """Connects."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._out = _SocketOutbox(self, self._socket)
        try:
            self._socket.connect(("127.0.0.1", self.frame["port"]))
        except BlockingIOError:
            self.workspace.watcher.watch_write(self._socket.fileno(), lambda _event: self._on_connected())
        except OSError as error:
            self._fail(error.errno)
        else:
            self._on_connected()

    def put_input(self, data):
        if self._out is not None:
            self._out.put_data(data)

    def end_input(self):
        if self._out is not None:
            self._out.end()

    def take_credit(self, stream, count):
        if self._source is not None:
            self._source.credit += count

    def cancel(self):
        self._close()
        super().cancel()

    def on_written(self):
        """Called when all input is written and the socket is shut down for writing."""
        if self._source is None:
            self._end()

    def _on_connected(self):
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.workspace.watcher.forget(self._socket.fileno())
        if number:
            self._fail(number)
            return
        try:  # reading and writing are watched separately, so each needs its own descriptor
            fd = os.dup(self._socket.fileno())
        except OSError as error:  # other activities used up the descriptors while the connection was made
            self._fail(error.errno)
            return
        self.send({"type": "dialed"})
        self._source = Source(fd, self.id_json, b"socket", self.frame["window"], self._on_source_end)
        self.workspace.sources.add(self._source)
        self._out.open()

    def _on_source_end(self, source):
        os.close(source.fd)
        self._source = None
        self.send({"type": "output_end", "stream": "socket"})
        if self._out is None or self._out.is_over:
            self._end()

    def _fail(self, number):
        self._close()
        code = "refused" if number == errno.ECONNREFUSED else "io"
        self.finish(error={"code": code, "message": f"port {self.frame['port']} of the sandbox: {os.strerror(number)}"})

    def _end(self):
        self._close()
        self.finish()

    def _close(self):
        if self._socket is None:
            return
        self.workspace.watcher.forget(self._socket.fileno())
        if self._source is not None:
            self.workspace.sources.remove(self._source)
            os.close(self._source.fd)
            self._source = None
        self._socket.close()
        self._socket = self._out = None


class _SocketOutbox(InputOutbox):
    """Bytes on their way to the peer of a connection."""

    def __init__(self, connection, sock):
        super().__init__(connection, sock.fileno())
        self._socket = sock

    def on_written(self):
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the peer has closed the connection
        self._activity.on_written()
