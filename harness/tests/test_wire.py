import json
import os
import random
import time
import unittest

from sandglass_harness.broker.channel import GatheringOutbox, LineBuffer, Outbox
from sandglass_harness.wire import decode, encode


class LineBufferTest(unittest.TestCase):
    def test_lines_come_out_whole_wherever_the_bytes_are_cut(self):
        data = 'one\n\nü€😀 {"a":1}\r\n\u2028x\nlast'.encode()
        want = ["one".encode(), b"", 'ü€😀 {"a":1}\r'.encode(), "\u2028x".encode()]
        for size in range(1, len(data) + 1):
            buffer = LineBuffer()
            lines = [line for at in range(0, len(data), size) for line in buffer.push(data[at : at + size])]
            self.assertEqual((lines, buffer.held), (want, 4), f"pieces of {size} bytes")

    def test_random_cuts_change_nothing(self):
        random.seed(7)
        data = b"".join(os.urandom(random.randrange(40)).replace(b"\n", b"") + b"\n" for _ in range(200))
        buffer, lines, at = LineBuffer(), [], 0
        while at < len(data):
            size = random.randrange(1, 30)
            lines += buffer.push(data[at : at + size])
            at += size
        self.assertEqual(lines, data.split(b"\n")[:-1])

    def test_the_size_of_an_unfinished_line_is_reported(self):
        buffer = LineBuffer()
        self.assertEqual((buffer.push(b"abc"), buffer.held), ([], 3))
        self.assertEqual((buffer.push(b"de"), buffer.held), ([], 5))
        self.assertEqual((buffer.push(b"\nfg"), buffer.held), ([b"abcde"], 2))

    def test_a_line_of_many_small_pieces_costs_linear_time(self):
        def cost(pieces):
            buffer = LineBuffer()
            started = time.process_time()
            for _ in range(pieces):
                buffer.push(b"0123456789abcdef")
            buffer.push(b"\n")
            return time.process_time() - started

        cost(1000)
        # Quadratic time would be 256 times as much; a noisy machine may triple either side.
        self.assertLess(cost(160_000), 16 * 10 * max(cost(10_000), 0.002))


class DecodeTest(unittest.TestCase):
    def test_an_object_is_taken_as_it_is(self):
        line = '{"type":"log","message":"ü","n":[9007199254740991,-9007199254740991,1.5,1e300,null,true]}'
        self.assertEqual(decode(line.encode()), json.loads(line))

    def test_what_the_host_could_not_carry_is_refused(self):
        """HA-13: values that are not JSON numbers are rejected."""
        refused = {
            "NaN": b'{"data":NaN}',
            "Infinity": b'{"data":[Infinity]}',
            "-Infinity": b'{"data":-Infinity}',
            "2**53": b'{"data":9007199254740992}',
            "-2**53": b'{"data":-9007199254740992}',
            "five thousand digits": b'{"data":' + b"9" * 5000 + b"}",
            "a float that overflows": b'{"data":1e400}',
            "not an object": b"[1]",
            "a bare word": b"final_result",
            "nothing": b"",
            "half an object": b'{"type":',
            "two objects": b"{}{}",
            "broken UTF-8": b'{"data":"\xff"}',
            "a lone surrogate in UTF-8": b'{"data":"\xed\xa0\x80"}',
            "a million brackets": b'{"data":' + b"[" * 1_000_000,
        }
        for name, line in refused.items():
            with self.subTest(name), self.assertRaises(ValueError):
                decode(line)

    def test_of_two_equal_keys_one_is_left_so_that_no_two_readers_differ(self):
        frame = decode(b'{"type":"log","message":"a","type":"error","message":"b"}')
        self.assertEqual(encode(frame), b'{"type":"error","message":"b"}\n')

    def test_two_hundred_levels_of_data_pass_and_no_more(self):
        """A script that writes to the descriptor itself must bring down neither the broker nor the host."""
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            for depth in (1, 199, 200, 201, 250, 900, 960, 985, 1000, 5000, 100_000):
                line = b'{"type":"final_result","data":' + opening * depth + b"0" + closing * depth + b"}"
                with self.subTest(depth):
                    if depth <= 200:
                        self.assertEqual(encode(decode(line)), line + b"\n")
                    else:
                        with self.assertRaises(ValueError):
                            decode(line)

    def test_a_wide_value_is_not_deep(self):
        frame = {"type": "final_result", "data": [{"a": [n]} for n in range(1000)]}
        self.assertEqual(decode(encode(frame)), frame)

class EncodeTest(unittest.TestCase):
    def test_a_frame_is_one_line_whatever_its_text_holds(self):
        frame = {"type": "stdout", "text": 'a\nb\r\u2028\u0000"\\ ü😀'}
        line = encode(frame)
        self.assertEqual((line.count(b"\n"), line[-1:], json.loads(line)), (1, b"\n", frame))

    def test_lone_surrogates_travel_escaped(self):
        self.assertEqual(encode({"text": "ü\ud800"}), b'{"text":"\\u00fc\\ud800"}\n')

    def test_a_number_that_json_lacks_is_refused(self):
        with self.assertRaises(ValueError):
            encode({"data": float("nan")})


class OutboxTest(unittest.TestCase):
    def test_a_peer_that_does_not_read_blocks_nothing_and_loses_nothing(self):
        for kind in (Outbox, GatheringOutbox):
            with self.subTest(kind.__name__):
                self.write_to_a_peer_that_does_not_read(kind)

    def write_to_a_peer_that_does_not_read(self, kind):
        read, write = os.pipe()
        os.set_blocking(write, False)
        outbox = kind(write)
        lines = [b"%d " % n * 5000 + b"\n" for n in range(40)]
        for line in lines:
            outbox.put(line)
        self.assertGreater(outbox.size, 0)
        got = b""
        while not outbox.flush():
            got += os.read(read, 1 << 20)
        os.close(write)
        while piece := os.read(read, 1 << 20):
            got += piece
        os.close(read)
        self.assertEqual((got == b"".join(lines), outbox.size), (True, 0))

    def test_a_peer_that_is_gone_is_an_os_error(self):
        read, write = os.pipe()
        os.close(read)
        with self.assertRaises(OSError):
            Outbox(write).put(b"x\n")
        gathered = GatheringOutbox(write)
        gathered.put(b"x\n")
        with self.assertRaises(OSError):
            gathered.flush()
        os.close(write)
