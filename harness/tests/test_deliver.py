import json
import os
import subprocess
import sys
import unittest
import zlib

PROGRAM = os.path.join(os.path.dirname(__file__), "..", "deliver.py")
# Stands in for the harness: prints its location and the unread bytes of the channel.
STAND_IN = {
    "sandglass_harness/__init__.py": "",
    "sandglass_harness/room/__init__.py": "",
    "sandglass_harness/room/thing.py": "WHERE = __name__, __package__, __file__",
    "sandglass_harness/start.py": "import os, sys\n"
    "from .room.thing import WHERE\n"
    "def main():\n"
    "    print(__name__, __file__, [name for name in sys.modules if name.startswith('sandglass')], os.read(0, 100))\n"
    "    print(*WHERE)\n",
}


def packed(sources):
    data = zlib.compress(json.dumps(sources).encode())
    return str(len(data)).encode() + b"\n" + data


class DeliverTest(unittest.TestCase):
    def start(self):
        with open(PROGRAM, encoding="utf-8") as file:
            command = [sys.executable, "-I", "-S", "-c", file.read()]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def given(self, data):
        """Exit code, output and words of the program whose channel carries `data` and ends."""
        process = self.start()
        out, said = process.communicate(data)
        return process.returncode, out, said.decode()

    def test_what_was_delivered_runs_and_finds_the_channel_untouched(self):
        code, out, said = self.given(packed(STAND_IN) + b"a frame\n")
        self.assertEqual((code, said), (0, ""))
        self.assertEqual(
            out,
            b"sandglass_harness.start /sandglass/sandglass_harness/start.py "
            b"['sandglass_harness', 'sandglass_harness.room', 'sandglass_harness.room.thing', 'sandglass_harness.start'] "
            b"b'a frame\\n'\n"
            b"sandglass_harness.room.thing sandglass_harness.room /sandglass/sandglass_harness/room/thing.py\n",
        )

    def test_the_delivery_may_come_in_pieces_of_a_byte(self):
        process = self.start()
        for byte in packed(STAND_IN) + b"rest":
            process.stdin.write(bytes([byte]))
            process.stdin.flush()
        out, said = process.communicate()
        self.assertEqual((process.returncode, said), (0, b""))
        self.assertIn(b"sandglass_harness.start", out)

    def test_a_channel_that_ends_early_is_reported(self):
        whole = packed(STAND_IN)
        for end in (0, 1, whole.index(b"\n"), whole.index(b"\n") + 1, len(whole) - 1):
            with self.subTest(end):
                self.assertEqual(
                    self.given(whole[:end]), (1, b"", "the channel was closed before the harness was delivered\n")
                )

    def test_what_is_not_a_delivery_runs_nothing(self):
        body = packed(STAND_IN).split(b"\n", 1)[1]
        for length in (b"", b"x", b"-1", b"1.5", b"0x10"):
            with self.subTest(length):
                code, out, said = self.given(length + b"\n" + body)
                self.assertEqual((code, out), (1, b""))
                self.assertEqual(said, "the first bytes on the channel are not a harness\n")
        for data in (b"5\nhello", b"2\nxx"):
            with self.subTest(data):
                self.assertEqual(self.given(data), (1, b"", "the first bytes on the channel are not a harness\n"))


if __name__ == "__main__":
    unittest.main()
