"""The channel of a workspace: lines, some of them followed by raw bytes."""

import os
import sys

from ..caps import MAX_PAYLOAD_BYTES, MAX_REQUEST_LINE_BYTES
from ..wire import encode
from .channel import READ_BYTES, Channel

HEAD = b'{"payload":'
MANY_BYTES = 1 << 20  # the size of a read while the host sends a lot


class FrameBuffer:
    """Splits bytes into lines and their payloads, in linear time. Each payload is copied once."""

    def __init__(self):
        self._parts = []  # the parts of an unfinished line
        self._held = 0
        self._line = None  # the line whose payload is being read
        self._payload, self._filled = None, 0

    def push(self, data):
        """Yields (line, payload) for each frame that `data` completes; the payload is None for most. Raises ValueError for a
        payload or a line that is too long."""
        start = 0
        while start < len(data) or self._is_full():
            if self._line is not None:
                start += self._fill(data, start)
                if self._is_full():
                    line, payload = self._line, self._payload
                    self._line = self._payload = None
                    yield line, payload
                continue
            end = data.find(b"\n", start)
            if end < 0:
                self._hold(data[start:])
                return
            line = data[start:end]
            if self._parts:
                line = b"".join((*self._parts, line))
                self._parts, self._held = [], 0
            start = end + 1
            if line.startswith(HEAD):
                self._line, size = _without_payload(line)
                self._payload, self._filled = bytearray(size), 0
            else:
                yield line, None

    def _is_full(self):
        return self._line is not None and self._filled == len(self._payload)

    def _fill(self, data, start):
        count = min(len(data) - start, len(self._payload) - self._filled)
        self._payload[self._filled : self._filled + count] = memoryview(data)[start : start + count]
        self._filled += count
        return count

    def _hold(self, part):
        self._parts.append(part)
        self._held += len(part)
        if self._held > MAX_REQUEST_LINE_BYTES:
            raise ValueError(f"a request line is longer than {MAX_REQUEST_LINE_BYTES} bytes")


def _without_payload(line):
    digits, comma, rest = line[len(HEAD) :].partition(b",")
    if not comma or not digits.isdigit() or len(digits) > 6 or int(digits) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a payload needs a size of at most {MAX_PAYLOAD_BYTES} bytes, followed by other fields")
    return b"{" + rest, int(digits)


class WorkspaceChannel(Channel):
    """A channel whose frames can have payloads. It calls `on_frame(line, payload)` for each frame of the host. On a sealed channel,
    `opener` verifies and removes the seals."""

    def __init__(self, fd, outbox, watcher, on_frame, opener=None):
        super().__init__(fd, outbox, watcher, on_frame)
        self._frames = FrameBuffer()
        self._read_bytes = READ_BYTES
        self._opener = opener

    def send(self, frame):
        """Queues a frame."""
        self.outbox.put(encode(frame))

    def send_payload(self, run_id_json, stream, data):
        """Queues bytes of a stream of an activity."""
        head = b'{"payload":%d,"type":"output","execution_id":%s,"stream":"%s"}\n' % (len(data), run_id_json, stream)
        self.outbox.put(head + data)

    def _on_readable(self, _event):
        try:
            data = os.read(self.fd, self._read_bytes)
        except BlockingIOError:
            return
        self._read_bytes = MANY_BYTES if len(data) >= READ_BYTES else READ_BYTES
        if not data:
            os._exit(0)  # the host is gone; the end of PID 1 ends all processes
        try:
            if self._opener is not None:
                data = self._opener.open(data)
            for line, payload in self._frames.push(data):
                self._on_line(line, payload)
        except ValueError as error:  # after an invalid request, the next bytes cannot be trusted
            sys.exit(f"the host sent an invalid request: {error}")
