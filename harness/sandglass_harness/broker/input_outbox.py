"""The input of a program or a connection: bytes from the host, queued until the reader consumes them."""

import os

from ..caps import INPUT_WINDOW_BYTES
from .channel import Outbox


class InputOutbox(Outbox):
    """Bytes on their way to a reader in the sandbox. The host gets new credit once they are written."""

    def __init__(self, activity, fd):
        super().__init__(fd)
        self._activity = activity
        self._watcher = activity.workspace.watcher
        self._ungranted = 0
        self._is_open = self._ends = False
        self.is_over = False

    def open(self):
        """Begins to write to the reader."""
        self._is_open = True
        self._write()

    def put_data(self, data, granted=True):
        """Queues bytes. `granted` bytes count towards the window of the host."""
        if self.is_over or self._ends:
            self._activity.grant_input(len(data) if granted else 0)
            return
        if granted:
            self._ungranted += len(data)
        self._queue.append(memoryview(data))
        self.size += len(data)
        self._write()

    def end(self):
        """Closes the input once everything is written."""
        self._ends = True
        self._write()

    def on_reader_gone(self):
        """Called when the reader has closed its end. Most readers do not reopen it."""
        self._ends = True

    def on_written(self):
        """Called once all input is written."""

    def _write(self):
        if not self._is_open or self.is_over:
            return
        try:
            is_empty = self.flush()
        except OSError:
            self.clear()
            is_empty = True
            self.on_reader_gone()
        self._grant(is_empty)
        if not is_empty:
            self._watcher.watch_write(self.fd, lambda _event: self._write())
            return
        self._watcher.forget(self.fd)
        if self._ends:
            self.is_over = True
            self.on_written()

    def _grant(self, is_empty):
        taken = self._ungranted - self.size
        if taken > 0 and (is_empty or taken >= INPUT_WINDOW_BYTES // 4):
            self._ungranted -= taken
            self._activity.grant_input(taken)


class InputPipe(InputOutbox):
    """The standard input of a program: a pipe or a terminal."""

    def __init__(self, activity, fd):
        super().__init__(activity, fd)
        os.set_blocking(fd, False)
        self.open()

    def close(self):
        """Drops the unwritten input and closes the descriptor."""
        if not self.is_over:
            self.is_over = True
            self._watcher.forget(self.fd)
            os.close(self.fd)

    def on_reader_gone(self):
        # Another process may reopen a terminal.
        self._ends = self._activity.frame["tty"] is None

    def on_written(self):
        os.close(self.fd)
