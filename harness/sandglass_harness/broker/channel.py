"""The channel to the host: lines in, lines out. Both directions are bounded and never block."""

import itertools
import os
import select
import sys
import time
from collections import deque

from ..caps import MAX_REQUEST_LINE_BYTES
from ..wire import encode

READ_BYTES = 1 << 16  # malloc would map and unmap a larger buffer at each read
FRAMES_AT_ONCE = 64  # in one write
FLUSH_SEC = 5  # time for the host to read the last frames


class LineBuffer:
    """Splits bytes into lines in linear time. `held` is the size of an unfinished line."""

    def __init__(self):
        self._parts = []
        self.held = 0

    def push(self, data):
        """Returns the lines that `data` completes, without their newlines."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts) if len(self._parts) > 1 else lines[0]
            self._parts.clear()
            self.held = 0
        if rest:
            self._parts.append(rest)
            self.held += len(rest)
        return lines

    def starts_with(self, head):
        """True if the unfinished line starts with these bytes."""
        first = self._parts[0] if self._parts else b""
        return (first if len(first) >= len(head) else b"".join(self._parts[: len(head)])).startswith(head)


class Outbox:
    """Lines on their way to a peer. The descriptor must not block."""

    def __init__(self, fd):
        self.fd = fd
        self._queue = deque()
        self.size = 0

    def put(self, data):
        """Queues a line, and writes as much as the peer accepts."""
        self._queue.append(memoryview(data))
        self.size += len(data)
        if len(self._queue) == 1:
            self.flush()

    def clear(self):
        """Drops all unsent bytes."""
        self._queue.clear()
        self.size = 0

    def flush(self):
        """Writes as much as the peer accepts. Returns True if nothing is left. Raises OSError if the peer is gone."""
        while self._queue:
            try:
                written = os.write(self.fd, self._queue[0])
            except BlockingIOError:
                return False
            self.size -= written
            if written == len(self._queue[0]):
                self._queue.popleft()
            else:
                self._queue[0] = self._queue[0][written:]
        return True


class GatheringOutbox(Outbox):
    """Writes all frames of one turn of the loop together, because each write wakes the host."""

    def put(self, data):
        """Queues a frame."""
        self._queue.append(memoryview(data))
        self.size += len(data)

    def flush(self):
        """Writes as much as the peer accepts. Returns True if nothing is left. Raises OSError if the peer is gone."""
        queue = self._queue
        while queue:
            try:
                written = os.writev(self.fd, list(itertools.islice(queue, FRAMES_AT_ONCE)))
            except BlockingIOError:
                return False
            self.size -= written
            while queue and written >= len(queue[0]):
                written -= len(queue.popleft())
            if written:
                queue[0] = queue[0][written:]
        return True


class Channel:
    """Reads lines of the host from a descriptor, and sends frames through an outbox."""

    def __init__(self, fd, outbox, watcher, on_line):
        self.fd = fd
        self.outbox = outbox
        self._inbox = LineBuffer()
        self._watcher = watcher
        self._on_line = on_line

    def open(self):
        """Starts to read, and calls `on_line` for each line."""
        self._watcher.watch_read(self.fd, self._on_readable)

    def send(self, frame):
        """Queues a frame, and writes what is queued."""
        self.outbox.put(encode(frame))
        self.update_write_watch()

    def update_write_watch(self):
        """Writes the output gathered in this turn. If a rest remains, watches the outbox for writability."""
        if self.outbox.size and not self.outbox.flush():
            self._watcher.watch_write(self.outbox.fd, self._on_writable)
        else:
            self._watcher.forget(self.outbox.fd)

    def holds_part_of_a_line(self):
        """True if a request line is incomplete."""
        return self._inbox.held > 0

    def flush_and_exit(self):
        """Ends the sandbox when the host has read the last frame, or takes too long."""
        deadline = time.monotonic() + FLUSH_SEC
        while not self.outbox.flush() and time.monotonic() < deadline:
            select.select([], [self.outbox.fd], [], 0.1)
        os._exit(0)

    def _on_writable(self, _event):
        self.update_write_watch()

    def _on_readable(self, _event):
        try:
            data = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)  # the host is gone; the end of PID 1 ends all processes
        for line in self._inbox.push(data):
            self._on_line(line)
        if self._inbox.held > MAX_REQUEST_LINE_BYTES:
            sys.exit(f"a request line is longer than {MAX_REQUEST_LINE_BYTES} bytes")
