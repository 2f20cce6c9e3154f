"""Reads output for the host: only as fast as the host consumes it, and from each descriptor in turn."""

import os

from ..caps import MAX_PAYLOAD_BYTES, MAX_WAITING_BYTES


class Source:
    """A descriptor whose bytes go to the host as one stream of an activity. `credit` is the number of bytes that the host still
    accepts. `on_end()` is called at the end of the stream."""

    def __init__(self, fd, run_id_json, stream, credit, on_end):
        self.fd = fd
        self.run_id_json = run_id_json
        self.stream = stream
        self.credit = credit
        self.bytes = 0
        self.is_last = False  # True once no process writes any more; the remaining bytes are in the pipe already
        self._on_end = on_end

    def end(self):
        """Reports the end of the stream, once."""
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(self)


class Sources:
    """All descriptors with output, the least recently read first."""

    def __init__(self, watcher, channel):
        self._watcher = watcher
        self._channel = channel
        self._all = {}

    @property
    def is_full(self):
        """True if so much output waits for the host that reading stops."""
        return self._channel.outbox.size >= MAX_WAITING_BYTES

    @property
    def has_rest(self):
        """True if a stream without writers has unread bytes, which no event reports."""
        return any(source.is_last and source.credit > 0 for source in self._all.values())

    def add(self, source):
        """Begins to read from a source."""
        self._all[source.fd] = source

    def remove(self, source):
        """Stops reading from a source."""
        if self._all.pop(source.fd, None) is not None:
            self._watcher.forget(source.fd)

    def arm(self):
        """Watches the sources that may be read now, and reads those without writers."""
        is_full = self.is_full
        for source in list(self._all.values()):
            if is_full or source.credit <= 0:
                self._watcher.forget(source.fd)
            elif source.is_last:
                while source.fd in self._all and source.credit > 0 and not self.is_full:
                    self._read(source)
                is_full = self.is_full
            else:
                self._watcher.watch_read(source.fd, lambda _event, source=source: self._read(source))

    def _read(self, source):
        if self.is_full or source.credit <= 0 or source.fd not in self._all:
            return
        try:
            data = os.read(source.fd, min(MAX_PAYLOAD_BYTES, source.credit))
        except BlockingIOError:
            if source.is_last:
                self._finish(source)
            return
        except OSError:  # a terminal whose other side is closed
            data = b""
        if not data:
            self._finish(source)
            return
        source.credit -= len(data)
        source.bytes += len(data)
        self._channel.send_payload(source.run_id_json, source.stream, data)
        self.remove(source)  # to the end of the queue
        if source.is_last and source.credit <= 0:  # more than a pipe can hold: a process of another activity still writes to it
            source.end()
        else:
            self.add(source)

    def _finish(self, source):
        self.remove(source)
        source.end()
