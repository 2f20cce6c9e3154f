"""Lines with payloads: the framing of the channel in a workspace."""

import time
import unittest

from sandglass_harness.broker.payloads import FrameBuffer
from sandglass_harness.caps import MAX_PAYLOAD_BYTES

STREAM = b'{"type":"ping"}\n{"payload":5,"type":"input"}\na\nb\nc{"payload":0,"type":"input"}\n\n{"type":"x"}\n'
FRAMES = [
    (b'{"type":"ping"}', None),
    (b'{"type":"input"}', b"a\nb\nc"),
    (b'{"type":"input"}', b""),
    (b"", None),
    (b'{"type":"x"}', None),
]


class FrameBufferTest(unittest.TestCase):
    def test_any_split_of_the_bytes_gives_the_same_frames(self):
        for size in range(1, len(STREAM) + 1):
            buffer, found = FrameBuffer(), []
            for start in range(0, len(STREAM), size):
                found += buffer.push(STREAM[start : start + size])
            self.assertEqual(found, FRAMES, size)

    def test_a_payload_that_is_not_announced_as_the_protocol_says_is_refused(self):
        for head in (b"-1,", b"+1,", b" 1,", b"1 ,", b"1e3,", b"", b"1}", b"9999999,", b"%d," % (MAX_PAYLOAD_BYTES + 1), "\u0661,".encode()):
            with self.subTest(head), self.assertRaises(ValueError):
                list(FrameBuffer().push(b'{"payload":' + head + b'"type":"input"}\n'))

    def test_the_largest_payload_passes(self):
        data = b'{"payload":%d,"type":"input"}\n' % MAX_PAYLOAD_BYTES + b"\n" * MAX_PAYLOAD_BYTES
        self.assertEqual(list(FrameBuffer().push(data)), [(b'{"type":"input"}', b"\n" * MAX_PAYLOAD_BYTES)])

    def test_a_line_that_never_ends_is_refused(self):
        buffer = FrameBuffer()
        with self.assertRaises(ValueError):
            for _ in range(100):
                list(buffer.push(b"x" * (1 << 20)))

    def test_a_long_line_in_many_pieces_costs_linear_time(self):
        def cost(pieces):
            buffer, began = FrameBuffer(), time.thread_time()
            for _ in range(pieces):
                list(buffer.push(b"x" * 1024))
            return time.thread_time() - began

        cost(1000)
        self.assertLess(cost(16_000), 16 * 4 * max(cost(1000), 0.001))


if __name__ == "__main__":
    unittest.main()
