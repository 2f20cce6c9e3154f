import hmac
import os
import socket
import struct
import threading
import unittest

from sandglass_harness.broker import seal
from sandglass_harness.broker.payloads import WorkspaceChannel

KEY = bytes(range(32))


class ReceiveKeyTest(unittest.TestCase):
    def setUp(self):
        self.host, self.harness = socket.socketpair()
        self.harness.setblocking(False)
        self.addCleanup(self.host.close)
        self.addCleanup(self.harness.close)

    def test_the_key_is_the_first_bytes_and_what_follows_stays_on_the_channel(self):
        self.host.sendall(KEY + b'{"type":"ping"}\n')
        self.assertEqual(seal.receive_key(self.harness.fileno()), KEY)
        self.assertEqual(self.harness.recv(100), b'{"type":"ping"}\n')

    def test_the_key_is_waited_for_and_may_come_in_pieces(self):
        def send():
            for byte in KEY:
                self.host.send(bytes([byte]))

        sender = threading.Thread(target=send)
        sender.start()
        self.assertEqual(seal.receive_key(self.harness.fileno()), KEY)
        sender.join()

    def test_a_host_that_goes_before_it_sent_the_whole_key_ends_the_process(self):
        self.host.sendall(KEY[:31])
        self.host.close()
        pid = os.fork()
        if pid == 0:
            try:
                seal.receive_key(self.harness.fileno())
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


class TakesWritesTest(unittest.TestCase):
    def test_a_pipe_takes_writes_and_the_probe_is_a_blank_line(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        self.assertEqual((seal.takes_writes(read), os.read(read, 100)), (True, b"\n"))

    def test_a_full_pipe_takes_writes_as_well(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        os.set_blocking(write, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(write, bytes(65536))
        self.assertTrue(seal.takes_writes(read))

    def test_a_socket_takes_no_writes_of_others(self):
        one, other = socket.socketpair()
        self.addCleanup(one.close)
        self.addCleanup(other.close)
        self.assertFalse(seal.takes_writes(one.fileno()))


class SealedOutboxTest(unittest.TestCase):
    def test_each_piece_has_its_length_and_a_tag_over_its_number_and_content(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        outbox = seal.SealedOutbox(write, KEY)
        for count, line in enumerate((b"one\n", b"one\n", b"three\n")):
            outbox.put(line)
            outbox.flush()
            mark = hmac.digest(KEY, struct.pack(">Q", count) + line, "sha256")[:16]
            self.assertEqual(os.read(read, 1000), struct.pack(">I", len(line)) + mark + line)

    def test_a_long_line_is_cut_into_pieces_that_are_numbered_on(self):
        host, harness = socket.socketpair()
        self.addCleanup(host.close)
        self.addCleanup(harness.close)
        line = b"x" * (seal.MAX_PIECE + 1)
        received = bytearray()

        def receive():
            while len(received) < len(line) + 2 * 20:
                received.extend(host.recv(1 << 16))

        receiver = threading.Thread(target=receive)
        receiver.start()
        outbox = seal.SealedOutbox(harness.fileno(), KEY)
        outbox.put(line)
        outbox.flush()
        receiver.join()
        first, second = line[: seal.MAX_PIECE], line[seal.MAX_PIECE :]
        expected = b"".join(
            struct.pack(">I", len(piece)) + hmac.digest(KEY, struct.pack(">Q", count) + piece, "sha256")[:16] + piece
            for count, piece in enumerate((first, second))
        )
        self.assertEqual(bytes(received), expected)


def sealed(*contents, key=KEY, first=1 << 63):
    """What the host sends for these contents."""
    marks = [hmac.digest(key, struct.pack(">Q", first + n) + content, "sha256")[:16] for n, content in enumerate(contents)]
    return [struct.pack(">I", len(content)) + mark + content for mark, content in zip(marks, contents)]


class OpenerTest(unittest.TestCase):
    def test_the_contents_come_in_order_however_the_bytes_are_cut(self):
        data = b"".join(sealed(b"one\n", b"", b"x" * seal.MAX_PIECE, b"end"))
        for size in (1, 7, 21, 4096, len(data)):
            opener = seal.Opener(KEY)
            got = b"".join(opener.open(data[at : at + size]) for at in range(0, len(data), size))
            self.assertEqual(got, b"one\n" + b"x" * seal.MAX_PIECE + b"end")

    def test_what_a_script_took_away_or_put_there_is_noticed(self):
        one, two = sealed(b'{"payload":9,"type":"input"}\n', b'{"type":"start"}\n')
        own = sealed(b"x", first=0)[0]  # a piece of the harness
        for data in (two, one[:5] + two, one + two[1:], one + one, own, one[:20] + b"!" + one[21:], b"\n" * 20):
            with self.subTest(data=data), self.assertRaises(ValueError):
                # What is left may begin like a longer piece, of which nothing is delivered before it is complete.
                seal.Opener(KEY).open(data + bytes(seal.MAX_PIECE))

    def test_a_channel_of_a_workspace_ends_with_it(self):
        ours, host = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(host.close)
        frames = []
        channel = WorkspaceChannel(ours.fileno(), None, None, lambda *frame: frames.append(frame), seal.Opener(KEY))
        one, two, three = sealed(b'{"type":"a"}\n{"payload":2,"type":"b"}\nx', b"\n", b'{"type":"c"}\n')
        host.send(one + two)
        channel._on_readable(None)
        self.assertEqual(frames, [(b'{"type":"a"}', None), (b'{"type":"b"}', b"x\n")])
        host.send(three[1:] + bytes(seal.MAX_PIECE))
        with self.assertRaises(SystemExit):
            channel._on_readable(None)


if __name__ == "__main__":
    unittest.main()
