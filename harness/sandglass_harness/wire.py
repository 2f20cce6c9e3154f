"""The channel to the host and the frames on it: bounded on both sides, never blocking."""

import json
import os
import select
import sys
import time
from collections import deque

MAX_REQUEST_LINE = 80 * 1024 * 1024
HIGH_WATER = 1024 * 1024
LOW_WATER = 256 * 1024
MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 200  # of the data in a frame, which is one level itself
LEAVE_SEC = 5  # for the host to take the last frames


def encode(frame):
    """One line on the wire."""
    try:
        return json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # lone surrogates travel escaped
        return json.dumps(frame, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line):
    """The object on a line from a script's process. Raises ValueError for whatever the host could not carry."""
    try:
        frame = json.loads(line.decode(), parse_int=_safe_integer, parse_float=finite, parse_constant=no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(frame, dict):
        raise ValueError("no object")
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _is_deeper(frame, MAX_DEPTH + 1):
        raise ValueError("nested too deep")
    return frame


def _is_deeper(value, levels):
    """Whether a value has more levels of containers, found without recursion."""
    level = [value]
    for _ in range(levels):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _safe_integer(digits):
    if len(digits) > 17:
        raise ValueError("an integer beyond 2**53")
    value = int(digits)
    if abs(value) > MAX_SAFE_INTEGER:
        raise ValueError("an integer beyond 2**53")
    return value


class BeyondFloat(ValueError):
    """A number that no float carries."""


def finite(digits):
    """As `parse_float` of JSON."""
    value = float(digits)
    if value - value != 0:
        raise BeyondFloat("a number beyond the range of a float")
    return value


def no_constant(name):
    """As `parse_constant` of JSON: NaN and the infinities are none."""
    raise ValueError(name)


class LineBuffer:
    """Cuts bytes into lines in linear time; tells how much of an unfinished line it holds."""

    def __init__(self):
        self._parts = []
        self.held = 0

    def push(self, data):
        """The lines that `data` completes, without their newline."""
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


class Outbox:
    """Lines on their way to the host. The descriptor must not block."""

    def __init__(self, fd):
        self.fd = fd
        self._queue = deque()
        self.size = 0

    def put(self, data):
        """Queues a line; writes at once what the peer takes."""
        self._queue.append(memoryview(data))
        self.size += len(data)
        if len(self._queue) == 1:
            self.flush()

    def clear(self):
        """Forgets what the peer has not taken."""
        self._queue.clear()
        self.size = 0

    def flush(self):
        """Writes what the peer takes. True when nothing is left. Raises OSError when the peer is gone."""
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


class Channel:
    """Lines of the host come in by one descriptor, frames go out by an outbox. Neither blocks."""

    def __init__(self, fd, outbox, watcher, on_line):
        self.fd = fd
        self.outbox = outbox
        self._inbox = LineBuffer()
        self._watcher = watcher
        self._on_line = on_line

    def open(self):
        """From now on each line that comes is handed to `on_line`."""
        self._watcher.reading(self.fd, self._on_readable)

    def send(self, frame):
        """Queues a frame."""
        self.outbox.put(encode(frame))
        self.watch()

    def watch(self):
        """Waits for room while the outbox holds anything."""
        if self.outbox.size:
            self._watcher.writing(self.outbox.fd, self._on_writable)
        else:
            self._watcher.forget(self.outbox.fd)

    def holds_part_of_a_line(self):
        """Whether a request has begun and has not ended."""
        return self._inbox.held > 0

    def leave(self):
        """Gives the sandbox up, once the host has the last frame."""
        deadline = time.monotonic() + LEAVE_SEC
        while not self.outbox.flush() and time.monotonic() < deadline:
            select.select([], [self.outbox.fd], [], 0.1)
        os._exit(0)

    def _on_writable(self, _event):
        self.outbox.flush()
        self.watch()

    def _on_readable(self, _event):
        try:
            data = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)  # the host is gone: PID 1 takes everything with it
        for line in self._inbox.push(data):
            self._on_line(line)
        if self._inbox.held > MAX_REQUEST_LINE:
            sys.exit("a request line is too long")
