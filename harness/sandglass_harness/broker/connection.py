"""Connections to the sandbox's own loopback."""

import errno
import os
import socket

from ..caps import INPUT_WINDOW_BYTES
from .activity import Activity
from .channel import Outbox
from .sources import Source


class Connection(Activity):
    """A connection to a port of the sandbox's own loopback."""

    def __init__(self, host, frame):
        super().__init__(host, frame)
        self._socket = self._out = self._source = None

    def begin(self):
        """Connects."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._out = _SocketOutbox(self, self._socket.fileno())
        try:
            self._socket.connect(("127.0.0.1", self.frame["port"]))
        except BlockingIOError:
            self.host.watcher.watch_write(self._socket.fileno(), lambda _event: self._on_connected())
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
        """Everything was written, and the socket is shut for writing."""
        if self._source is None:
            self._end()

    def _on_connected(self):
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.host.watcher.forget(self._socket.fileno())
        if number:
            self._fail(number)
            return
        self.send({"type": "dialed"})
        # A descriptor of its own: one waits to be read, the other to be written.
        self._source = Source(os.dup(self._socket.fileno()), self.id_json, b"socket", self.frame["window"], self._on_source_end)
        self.host.sources.add(self._source)
        self._out.open()

    def _on_source_end(self, source):
        os.close(source.fd)
        self._source = None
        self.send({"type": "output_end", "stream": "socket"})
        if self._out is None or self._out.is_shut:
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
        self.host.watcher.forget(self._socket.fileno())
        if self._source is not None:
            self.host.sources.remove(self._source)
            os.close(self._source.fd)
            self._source = None
        self._socket.close()
        self._socket = self._out = None


class _SocketOutbox(Outbox):
    """Bytes on their way to the peer of a connection. The host may send more when they are written."""

    def __init__(self, connection, fd):
        super().__init__(fd)
        self._connection = connection
        self._ungranted = 0
        self._is_open = self._ends = False
        self.is_shut = False

    def open(self):
        """Begins to write: the connection is there."""
        self._is_open = True
        self._write()

    def put_data(self, data):
        """Queues bytes."""
        self._ungranted += len(data)
        if not self.is_shut:
            self._queue.append(memoryview(data))
            self.size += len(data)
        self._write()

    def end(self):
        """Shuts the socket for writing when everything is written."""
        self._ends = True
        self._write()

    def _write(self):
        if not self._is_open:
            return
        watcher = self._connection.host.watcher
        try:
            is_empty = self.flush()
        except OSError:  # the peer reads no more
            self.clear()
            is_empty = self._ends = True
        taken = self._ungranted - self.size
        if taken > 0 and (is_empty or taken >= INPUT_WINDOW_BYTES // 4):
            self._ungranted -= taken
            self._connection.grant_input(taken)
        if not is_empty:
            watcher.watch_write(self.fd, lambda _event: self._write())
            return
        watcher.forget(self.fd)
        if self._ends and not self.is_shut:
            self.is_shut = True
            self._shut()

    def _shut(self):
        try:
            socket.socket.shutdown(self._connection._socket, socket.SHUT_WR)
        except OSError:
            pass  # the peer has closed the connection
        self._connection.on_written()
