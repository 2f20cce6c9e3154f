import hashlib
import json
import os
import socket
import struct
import unittest
import warnings

from sandglass_harness.caps import MAX_ANSWER_BYTES
from sandglass_harness.script import host_tools, tool_endpoint

TOKEN = "a-token"
ADDRESS = {"host": "127.0.0.1", "token": TOKEN}


def request(token=TOKEN, **fields):
    names = {
        "Host": "sandbox",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Authorization": f"Bearer {token}",
        **fields,
    }
    return "".join(["GET / HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in names.items()), "\r\n"]).encode()


def frame(payload, kind=1, last=True, mask=b"abcd"):
    size = len(payload)
    first = (0x80 if last else 0) | kind
    head = struct.pack(">BB", first, 0x80 | size) if size < 126 else struct.pack(">BBQ", first, 0xFF, size)
    return head + mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))


def answer(number, value):
    return json.dumps({"type": "tool_result", "id": str(number), "result": value}).encode()


class Script:
    """A process that listens as a script does, then makes `calls` calls. `outcome` returns their answers."""

    def __init__(self, calls=1, endpoint=ADDRESS):
        self._clients = []
        self._out, out = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.dup2(out, 1)
            os.closerange(3, 256)
            warnings.simplefilter("ignore", ResourceWarning)  # for the sockets whose descriptors were closed
            try:
                said = self._live(endpoint, calls)
            except BaseException as error:
                said = [type(error).__name__, str(error)]
            os.write(1, json.dumps(said).encode())
            os._exit(0)
        os.close(out)

    @staticmethod
    def _live(endpoint, calls):
        connection = tool_endpoint.connect(endpoint, "run 1")
        bridge = host_tools.Bridge(-1, connection, connection.read)
        said = []
        for _ in range(calls):
            try:
                said.append(bridge.call("f", {"n": 1}))
            except host_tools.ToolError as error:
                said.append([error.code, str(error)])
        return said

    def read(self, until=None):
        data = b""
        while until is None or until not in data:
            piece = os.read(self._out, 1 if until else 65536)
            if not piece:
                break
            data += piece
        return data.decode()

    def port(self):
        marker = self.read(b"\n")
        assert marker.startswith("INITIALIZED SERVER ") and marker.endswith("\n"), marker
        return int(marker.split()[2])

    def client(self, port, data=b""):
        sock = socket.create_connection(("127.0.0.1", port), 10)
        self._clients.append(sock)
        sock.sendall(data)
        return sock

    def outcome(self):
        said = json.loads(self.read())
        os.waitpid(self._pid, 0)
        os.close(self._out)
        for sock in self._clients:
            sock.close()
        return said


def receive(sock, until):
    data = b""
    while until not in data:
        piece = sock.recv(65536)
        if not piece:
            break
        data += piece
    return data


def opened(script, port=None):
    """Returns the host's connection, the head of the answer, and the bytes after it."""
    sock = script.client(script.port() if port is None else port, request())
    head, _, rest = receive(sock, b"\r\n\r\n").partition(b"\r\n\r\n")
    assert b"101 Switching Protocols" in head, head
    return sock, head, rest


class Handshake(unittest.TestCase):
    def test_answers_as_the_standard_says(self):
        script = Script()
        sock, head, rest = opened(script)
        self.assertIn(b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", head)
        call = rest or sock.recv(4096)
        self.assertEqual(call[0], 0x81)
        self.assertEqual(
            json.loads(call[2:]) | {"line": None},
            {"type": "tool_call", "execution_id": "run 1", "id": "1", "name": "f", "line": None, "args": {"n": 1}},
        )
        sock.sendall(frame(answer(1, 5)))
        self.assertEqual(script.outcome(), [5])

    def test_sha1(self):
        for size in range(130):
            data = bytes(range(size))
            self.assertEqual(tool_endpoint._sha1(data), hashlib.sha1(data).digest())

    def test_refuses_other_clients_and_waits_for_the_host(self):
        script = Script()
        port = script.port()
        others = {
            request("wrong"): b"401",
            request(""): b"401",
            request().replace(b"Authorization", b"X"): b"401",
            request(**{"Sec-WebSocket-Version": "8"}): b"400",
            request(Upgrade="h2c"): b"400",
            request().replace(b"GET", b"PUT"): b"400",
            b"\r\n\r\n": b"401",
            b"\x00\xff\r\n\r\n": b"401",
            b"x" * 20_000: b"431",
        }
        for data, status in others.items():
            self.assertIn(b" " + status + b" ", receive(script.client(port, data), b"\r\n\r\n"))
        sock, _, _ = opened(script, port)
        sock.sendall(frame(answer(1, True)))
        self.assertEqual(script.outcome(), [True])

    def test_silent_and_slow_clients_do_not_keep_the_host_out(self):
        script = Script()
        port = script.port()
        silent = [script.client(port) for _ in range(100)]
        slow = script.client(port, b"GET / ")
        sock, _, _ = opened(script, port)
        sock.sendall(frame(answer(1, 1)))
        self.assertEqual(script.outcome(), [1])

    def test_listens_for_one_connection(self):
        script = Script()
        port = script.port()
        sock, _, _ = opened(script, port)
        with self.assertRaises(ConnectionRefusedError):
            script.client(port)
        sock.close()
        with self.assertRaises(ConnectionRefusedError):
            script.client(port)
        self.assertEqual(script.outcome()[0][0], "cancelled")

    def test_gives_up_without_the_host(self):
        before, tool_endpoint.ACCEPT_SEC = tool_endpoint.ACCEPT_SEC, 0.1
        try:
            script = Script()
        finally:
            tool_endpoint.ACCEPT_SEC = before
        script.port()
        self.assertEqual(script.outcome(), ["EndpointError", "the host did not connect within 0.1 s"])

    def test_an_address_that_is_not_its_own(self):
        script = Script(endpoint={"host": "192.0.2.1", "token": TOKEN})
        self.assertEqual(script.outcome()[0], "EndpointError")


class Frames(unittest.TestCase):
    def outcome_of(self, data, calls=1):
        script = Script(calls)
        sock, _, _ = opened(script)
        sock.sendall(data)
        return script.outcome()

    def test_an_answer_in_fragments_with_a_ping_between(self):
        data = answer(1, "x" * 300)
        pieces = frame(data[:10], 1, False) + frame(b"hi", 9) + frame(data[10:20], 0, False) + frame(data[20:], 0)
        script = Script()
        sock, _, rest = opened(script)
        sock.sendall(pieces)
        self.assertIn(b"\x8a\x02hi", rest + receive(sock, b"\x8a\x02hi"))
        self.assertEqual(script.outcome(), ["x" * 300])

    def test_every_cut_of_an_answer(self):
        data = frame(answer(1, "some text"))
        script = Script()
        sock, _, _ = opened(script)
        for byte in data:
            sock.sendall(bytes([byte]))
        self.assertEqual(script.outcome(), ["some text"])

    def test_breaches_close_the_connection(self):
        ended = {
            "no mask": b"\x81\x01x",
            "a reserved bit": b"\xc1\x80abcd",
            "a continuation of nothing": frame(b"x", 0),
            "a text in a text": frame(b"x", 1, False) + frame(b"x", 1),
            "a fragmented ping": frame(b"x", 9, False),
            "a long ping": frame(b"x" * 200, 9),
        }
        for what, data in ended.items():
            with self.subTest(what):
                self.assertEqual(self.outcome_of(data), [["cancelled", "the host violated the WebSocket protocol"]])
        self.assertEqual(self.outcome_of(frame(b"x", 2)), [["cancelled", "the host sent a message that is not text"]])

    def test_an_answer_over_the_limit_is_not_read(self):
        announced = struct.pack(">BBQ", 0x81, 0xFF, MAX_ANSWER_BYTES + 5000) + b"abcd"
        (code, message), second = self.outcome_of(announced, calls=2)
        self.assertEqual((code, message), ("cancelled", f"the host sent an answer of more than {MAX_ANSWER_BYTES} bytes"))
        self.assertEqual(second, [code, message])

    def test_says_why_the_host_closed(self):
        closed = frame(struct.pack(">H", 1009) + b"too large", 8)
        self.assertEqual(self.outcome_of(closed, calls=2), [["cancelled", "the host closed the connection (1009: too large)"]] * 2)
        self.assertEqual(self.outcome_of(frame(b"", 8)), [["cancelled", "the host closed the connection (1000)"]])


if __name__ == "__main__":
    unittest.main()
