"""Tool calls over a WebSocket (RFC 6455): the endpoint of one script, for one connection of the host.

It listens before any part of the script runs, and prints a line with its port. Once a client has sent the token, it stops
listening. Calls and answers then use this connection instead of the frame socket.
"""

import os
import select
import struct
import time

import _socket
from _operator import _compare_digest

from ..caps import MAX_ANSWER_BYTES
from ..wire import encode
from .emit import Emitter
from .host_tools import ToolError

MARKER = "INITIALIZED SERVER"
ACCEPT_SEC = 10  # for the host to connect
_REQUEST_SEC = 2  # for a client to send its request
_MAX_CLIENTS = 64
_MAX_HEAD_BYTES = 8192
_MAX_MESSAGE_BYTES = MAX_ANSWER_BYTES + 4096  # an answer and what surrounds it
_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _CLOSE, _PING, _PONG = 0, 1, 8, 9, 10
_NORMAL, _PROTOCOL_ERROR, _UNSUPPORTED, _TOO_BIG = 1000, 1002, 1003, 1009


class EndpointError(Exception):
    """The host has no connection to the endpoint."""


def connect(endpoint, execution_id):
    """Listens, waits for the host, and returns the connection. Raises EndpointError."""
    try:
        listener = _listen(endpoint["host"])
    except OSError as error:
        raise EndpointError(f"the script cannot listen at {endpoint['host']}: {error.strerror}") from None
    try:
        os.write(1, f"{MARKER} {listener.getsockname()[1]}\n".encode())
        sock, answer, early = _await_host(listener, endpoint["token"].encode())
    finally:
        listener.close()
    try:  # only now, when no other client can connect
        sock.setblocking(True)
        sock.sendall(answer)
    except OSError:
        raise EndpointError("the host has closed the connection") from None
    return Connection(sock, execution_id, early)


def _listen(host):
    family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
    listener = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        listener.bind((host, 0))
        listener.listen(_MAX_CLIENTS)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


class _Client:
    """A client that has not sent the token yet."""

    def __init__(self, sock):
        self.socket = sock
        self.due = time.monotonic() + _REQUEST_SEC
        self._request = bytearray()

    def read(self, token):
        """Reads a part of the request. Returns the response and the bytes after the request if the token is right, or None while
        the request is incomplete. Raises ValueError with the HTTP status of the response for any other client."""
        try:
            data = self.socket.recv(_MAX_HEAD_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            raise ValueError("400 Bad Request")
        self._request += data
        head, end, early = bytes(self._request).partition(b"\r\n\r\n")
        if not end:
            if len(head) > _MAX_HEAD_BYTES:
                raise ValueError("431 Request Header Fields Too Large")
            return None
        return _answer_to(head, token), early

    def refuse(self, status):
        """Responds with an HTTP status and closes."""
        try:
            self.socket.send(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        except OSError:
            pass
        self.socket.close()


def _await_host(listener, token):
    """Serves clients until one sends the token. Slow clients do not block the host, but a flood of clients can, as the oldest are
    dropped."""
    deadline = time.monotonic() + ACCEPT_SEC
    clients = {}
    poll = select.poll()
    poll.register(listener.fileno(), select.POLLIN)

    def drop(fd, status):
        poll.unregister(fd)
        clients.pop(fd).refuse(status)

    try:
        while True:
            now = time.monotonic()
            if now >= deadline:
                raise EndpointError(f"the host did not connect within {ACCEPT_SEC} s")
            for fd in [fd for fd, client in clients.items() if now >= client.due]:
                drop(fd, "408 Request Timeout")
            for fd, _ in poll.poll(100):
                if fd in clients:
                    try:
                        opened = clients[fd].read(token)
                    except ValueError as error:
                        drop(fd, error)
                        continue
                    if opened is not None:
                        return clients.pop(fd).socket, *opened
                elif fd == listener.fileno():
                    if len(clients) == _MAX_CLIENTS:
                        drop(next(iter(clients)), "503 Service Unavailable")
                    try:
                        client = _Client(_socket.socket(fileno=listener._accept()[0]))
                    except OSError:  # the client is gone, or no descriptor is left
                        continue
                    client.socket.setblocking(False)
                    clients[client.socket.fileno()] = client
                    poll.register(client.socket.fileno(), select.POLLIN)
    finally:
        for client in clients.values():
            client.refuse("503 Service Unavailable")


def _answer_to(head, token):
    """Returns the response that opens a WebSocket. Raises ValueError with the HTTP status of any other response."""
    first, *lines = head.split(b"\r\n")
    fields = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    if not _compare_digest(fields.get(b"authorization", b""), b"Bearer " + token):
        raise ValueError("401 Unauthorized")
    key = fields.get(b"sec-websocket-key")
    is_upgrade = fields.get(b"upgrade", b"").lower() == b"websocket" and fields.get(b"sec-websocket-version") == b"13"
    if not first.startswith(b"GET ") or not is_upgrade or not key:
        raise ValueError("400 Bad Request")
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + _base64(_sha1(key + _KEY_SUFFIX)) + b"\r\n\r\n"
    )


def _base64(data):
    import binascii  # loaded already

    return binascii.b2a_base64(data, newline=False)


def _sha1(data):
    """Computes the SHA-1 of a short text, for the handshake. `hashlib` would load OpenSSL, or a file of that name from the
    workspace."""
    h = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0]
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack(">Q", len(data) * 8)
    for at in range(0, len(padded), 64):
        words = list(struct.unpack_from(">16I", padded, at))
        for n in range(16, 80):
            words.append(_rotate(words[n - 3] ^ words[n - 8] ^ words[n - 14] ^ words[n - 16], 1))
        a, b, c, d, e = h
        for n, word in enumerate(words):
            if n < 20:
                f, k = (b & c) | (~b & d), 0x5A827999
            elif n < 40:
                f, k = b ^ c ^ d, 0x6ED9EBA1
            elif n < 60:
                f, k = (b & c) | (b & d) | (c & d), 0x8F1BBCDC
            else:
                f, k = b ^ c ^ d, 0xCA62C1D6
            a, b, c, d, e = (_rotate(a, 5) + f + e + k + word) & 0xFFFFFFFF, a, _rotate(b, 30), c, d
        h = [(x + y) & 0xFFFFFFFF for x, y in zip(h, (a, b, c, d, e))]
    return struct.pack(">5I", *h)


def _rotate(word, count):
    return ((word << count) | (word >> (32 - count))) & 0xFFFFFFFF


class Connection(Emitter):
    """The connection of the host. It sends calls as text messages and receives answers. Once it is closed, every call fails."""

    def __init__(self, sock, execution_id, early=b""):
        super().__init__(sock.fileno())
        self._socket = sock
        self._execution_id = execution_id
        self._buffer = bytearray(early)
        self._parts = []
        self._size = 0
        self._failure = None

    def line_of(self, frame):
        """Encodes a frame as a line, with the id of the run, which no broker adds here."""
        return encode({"type": frame["type"], "execution_id": self._execution_id, **frame})

    def send_line(self, line):
        """Sends a line from `line_of`. Raises ToolError."""
        super().send_line(_frame(_TEXT, line))

    def read(self, _size):
        """Returns the next answer in the format of the frame socket: its length, then JSON. Raises ToolError."""
        while True:
            message = self._next_message()
            if message is not None:
                return struct.pack("=I", len(message)) + message
            try:
                data = self._socket.recv(1 << 20 if len(self._buffer) > 1 << 16 else 1 << 16)
            except OSError:
                data = b""
            if not data:
                raise self._fail("the connection to the host has ended")
            self._buffer += data

    def _write(self, data):
        if self._failure is not None:
            raise ToolError(self._failure, "cancelled")
        try:
            super()._write(data)
        except OSError:
            raise self._fail(self._reason_of_end()) from None
        except BaseException:  # a signal interrupted a frame, so the host could not parse the next one
            self._fail("a call was interrupted while it was being sent, so the connection to the host was closed")
            raise

    def _reason_of_end(self):
        """Returns the reason that the host gave for closing the connection, or a general message."""
        try:
            self._socket.setblocking(False)
            self._buffer += self._socket.recv(1 << 16)
            while self._next_message() is not None:
                pass
        except ToolError as error:
            return str(error)
        except OSError:
            pass
        return "the connection to the host has ended"

    def _next_message(self):
        """Takes frames from the buffer. Returns a complete message, or None if there is none yet."""
        while True:
            frame = self._take_frame()
            if frame is None:
                return None
            is_last, kind, payload = frame
            if kind == _CLOSE:
                raise self._fail(_closed_text(payload), _NORMAL)
            if kind == _PING:
                super().send_line(_frame(_PONG, payload))
            elif kind in (_TEXT, _CONTINUATION):
                if (kind == _TEXT) == bool(self._parts):
                    raise self._fail("the host violated the WebSocket protocol", _PROTOCOL_ERROR)
                self._parts.append(payload)
                self._size += len(payload)
                if is_last:
                    message, self._parts, self._size = b"".join(self._parts), [], 0
                    return message
            elif kind != _PONG:
                raise self._fail("the host sent a message that is not text", _UNSUPPORTED)

    def _take_frame(self):
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        length, start = second & 0x7F, 2
        if length == 126:
            if len(buffer) < 4:
                return None
            (length,), start = struct.unpack_from(">H", buffer, 2), 4
        elif length == 127:
            if len(buffer) < 10:
                return None
            (length,), start = struct.unpack_from(">Q", buffer, 2), 10
        kind = first & 0x0F
        is_control = kind >= _CLOSE
        if first & 0x70 or not second & 0x80 or (is_control and (length > 125 or not first & 0x80)):
            raise self._fail("the host violated the WebSocket protocol", _PROTOCOL_ERROR)
        if not is_control and self._size + length > _MAX_MESSAGE_BYTES:
            raise self._fail(f"the host sent an answer of more than {MAX_ANSWER_BYTES} bytes", _TOO_BIG)
        end = start + 4 + length
        if len(buffer) < end:
            return None
        payload = _unmask(buffer[start + 4 : end], bytes(buffer[start : start + 4]))
        del buffer[:end]
        return bool(first & 0x80), kind, payload

    def _fail(self, message, code=None):
        """Closes the connection. Returns the error of this call and of all later ones."""
        if self._failure is None:
            self._failure = message
            try:
                if code is not None:
                    self._socket.setblocking(False)
                    self._socket.send(_frame(_CLOSE, struct.pack(">H", code)))
                self._socket.shutdown(_socket.SHUT_RDWR)
            except OSError:
                pass
        return ToolError(self._failure, "cancelled")


def _frame(kind, payload):
    """Encodes one frame, unmasked, as servers send them."""
    length = len(payload)
    if length < 126:
        return struct.pack(">BB", 0x80 | kind, length) + payload
    if length < 1 << 16:
        return struct.pack(">BBH", 0x80 | kind, 126, length) + payload
    return struct.pack(">BBQ", 0x80 | kind, 127, length) + payload


def _unmask(data, mask):
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(size, "little")


def _closed_text(payload):
    code = struct.unpack_from(">H", payload)[0] if len(payload) >= 2 else _NORMAL
    reason = bytes(payload[2:]).decode(errors="replace")
    return f"the host closed the connection ({code}{': ' if reason else ''}{reason})"
