"""The input of a program: bytes of the host that wait until the program reads them."""

import os

from ..caps import INPUT_WINDOW_BYTES
from .channel import Outbox


class InputPipe(Outbox):
    """Bytes on their way to a program. The host may send more when they are written."""

    def __init__(self, activity, fd):
        super().__init__(fd)
        os.set_blocking(fd, False)
        self._activity = activity
        self._watcher = activity.host.watcher
        self._ungranted = 0
        self._ends = False
        self._is_open = True

    def put_data(self, data, granted=True):
        """Queues bytes. `granted` bytes count for the window of the host."""
        if not self._is_open or self._ends:
            self._activity.grant_input(len(data) if granted else 0)
            return
        if granted:
            self._ungranted += len(data)
        self._queue.append(memoryview(data))
        self.size += len(data)
        self._write()

    def end(self):
        """Closes the pipe when everything is written."""
        self._ends = True
        self._write()

    def close(self):
        """Drops what is left."""
        if self._is_open:
            self._is_open = False
            self._watcher.forget(self.fd)
            os.close(self.fd)

    def _write(self):
        if not self._is_open:
            return
        try:
            is_empty = self.flush()
        except OSError:  # the program has closed its end
            self.clear()
            is_empty = True
            self._ends = self._activity.frame["tty"] is None
        self._grant(is_empty)
        if is_empty and self._ends:
            self.close()
        elif is_empty:
            self._watcher.forget(self.fd)
        else:
            self._watcher.watch_write(self.fd, lambda _event: self._write())

    def _grant(self, is_empty):
        taken = self._ungranted - self.size
        if taken > 0 and (is_empty or taken >= INPUT_WINDOW_BYTES // 4):
            self._ungranted -= taken
            self._activity.grant_input(taken)
