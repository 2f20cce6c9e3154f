import io
import os
import pathlib
import socket
import subprocess
import sys
import threading
import types
import unittest
import uuid

HERE = pathlib.Path(__file__).parent.parent
SOURCE = (HERE / "relay.py").read_text(encoding="utf-8")
SILENCE_SEC = 30
STUCK_SEC = 2


def piece(data):
    return len(data).to_bytes(4, "big") + data


class PiecesTest(unittest.TestCase):
    def test_the_bytes_for_the_broker_are_the_same_wherever_the_stream_is_cut(self):
        names = {}
        exec(SOURCE.removesuffix("main()\n"), names)
        stream = piece(b"hello") + piece(b"") + piece(b"w" * 300) + piece(b"\n")
        for size in (1, 2, 3, 7, len(stream)):
            pieces = names["Pieces"]()
            out = b"".join(pieces.push(stream[at : at + size]) for at in range(0, len(stream), size))
            self.assertEqual(out, b"hello" + b"w" * 300 + b"\n")


class RelayTest(unittest.TestCase):
    """Runs `relay()` of the program between two pipes."""

    def start(self, silence_sec=SILENCE_SEC):
        self.broker, writes = os.pipe()
        program = SOURCE.removesuffix("main()\n") + f"STUCK_SEC = {STUCK_SEC}\nrelay({writes}, {silence_sec})\n"
        self.process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, pass_fds=[writes])
        os.close(writes)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.stdin.close)

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count):
        """Returns as many bytes as arrived for the broker."""
        got = b""
        while len(got) < count:
            data = os.read(self.broker, 1 << 16)
            if not data:
                self.fail(f"the relay ended after {len(got)} bytes")
            got += data
        return got

    def test_it_passes_bytes_on_and_ends_with_its_input(self):
        self.start()
        self.addCleanup(os.close, self.broker)
        self.send(piece(b"one") + piece(b"") + piece(b"two"))
        self.assertEqual(self.read(6), b"onetwo")
        self.process.stdin.close()
        self.assertEqual(self.process.wait(), 0)
        self.assertEqual(os.read(self.broker, 1), b"")

    def test_it_ends_without_heartbeats(self):
        self.start(silence_sec=0.5)
        self.addCleanup(os.close, self.broker)
        self.send(piece(b""))
        self.assertEqual(self.process.wait(timeout=10), 0)

    def test_it_ends_when_the_broker_takes_nothing_for_too_long(self):
        self.start()
        self.addCleanup(os.close, self.broker)
        with self.assertRaises(BrokenPipeError):  # more than both pipes hold, so this lasts until the end
            self.send(piece(bytes(1 << 20)))
        self.assertEqual(self.process.wait(timeout=10), 0)

    def test_it_ends_with_the_broker(self):
        self.start()
        self.send(piece(b"one"))
        self.assertEqual(os.read(self.broker, 100), b"one")
        os.close(self.broker)
        self.assertEqual(self.process.wait(timeout=10), 0)

    def test_a_broker_that_takes_nothing_stops_the_reading(self):
        self.start()
        self.addCleanup(os.close, self.broker)
        data = os.urandom(1 << 20)
        writer = threading.Thread(target=lambda: self.send(piece(data)))
        writer.start()
        got = self.read(len(data))
        writer.join()
        self.assertEqual(got, data)


class MeetingTest(unittest.TestCase):
    """Has the two programs find each other as on gVisor, where the kernel tells the uid of the sender of a message."""

    def meet(self, uid_of_sandbox, uid_of_relay):
        """Returns how both programs ended, and what the sandbox wrote to its new output."""
        name = f"sandglass-test-{uuid.uuid4()}"
        join = (HERE / "join.py").read_text(encoding="utf-8")
        told = "import json; print(json.dumps([stat.S_ISSOCK(os.fstat(0).st_mode), os.read(0, 100).decode()]), flush=True)"
        sandbox = join[: join.rindex("\njoin(")] + f"\nreceive_streams({name!r}, {uid_of_relay}, 10, True)\n{told}\n"
        relay = SOURCE.removesuffix("main()\n") + (
            f"to_broker = hand_over(connect({name!r}, {uid_of_sandbox}, 10, True), True)\n"
            "os.write(to_broker, b'a request')\nos.close(to_broker)\n"
        )
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes = [subprocess.Popen([sys.executable, "-c", program], **pipes) for program in (sandbox, relay)]
        (_, said), (wrote, failed) = [process.communicate(timeout=20) for process in processes]
        return [process.returncode for process in processes], said.decode(), wrote.decode(), failed.decode()

    def test_the_sandbox_gets_the_streams_of_the_relay_and_a_socket_as_its_input(self):
        found = self.meet(os.getuid(), os.getuid())
        self.assertEqual(found, ([0, 0], "", '[true, "a request"]\n', ""))

    def test_a_relay_with_another_uid_than_the_expected_one_ends_the_sandbox(self):
        codes, said, wrote, _ = self.meet(os.getuid(), os.getuid() + 1)
        self.assertEqual((codes[0], said, wrote), (1, f"uid {os.getuid()} connected to the sandbox\n", ""))

    def test_a_sandbox_with_another_uid_than_the_expected_one_gets_no_streams(self):
        codes, said, wrote, failed = self.meet(os.getuid() + 1, os.getuid())
        self.assertEqual((codes[1], wrote, failed), (1, "", f"uid {os.getuid()} listens in place of the broker\n"))
        self.assertEqual((codes[0], said), (1, "uid None connected to the sandbox\n"))


class JoinTest(unittest.TestCase):
    def test_a_peer_with_another_uid_than_the_expected_one_ends_the_sandbox(self):
        name = f"sandglass-test-{uuid.uuid4()}"
        source = (HERE / "join.py").read_text(encoding="utf-8")
        program = source[: source.rindex("\njoin(")] + f"\nreceive_streams({name!r}, {os.getuid() + 1}, 10)\n"
        process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(peer.close)
        while process.poll() is None:
            try:
                peer.connect("\0" + name)
                break
            except ConnectionRefusedError:
                continue
        _, said = process.communicate()
        self.assertEqual((process.returncode, said), (1, f"uid {os.getuid()} connected to the sandbox\n".encode()))

    def test_a_volume_with_another_directory_than_the_one_asked_for_ends_the_sandbox(self):
        source = (HERE / "join.py").read_text(encoding="utf-8")
        mounts = "1 0 0:1 / /packages ro - overlay o ro\n2 0 0:1 /a\\040b/c /packages ro,noatime - overlay o ro\n"
        join = {"open": lambda path: io.StringIO(mounts)}
        exec(source[: source.rindex("\njoin(")], join)
        path = types.SimpleNamespace(join=os.path.join, isdir=lambda path: path == "/packages/usr")
        join["os"] = types.SimpleNamespace(path=path, listdir=lambda path: [] if path == "/tools" else ["module.py"])
        for volumes in ({"/packages": ""}, {"/packages": "c"}, {"/packages": "a b/c"}):
            join["check_volumes"](volumes, False)
            join["check_volumes"](volumes, True)
        for volumes, reason in (
            ({"/packages": "d"}, "/packages: the volume has the whole image there, not d"),
            ({"/elsewhere": "c"}, "/elsewhere: the volume has the whole image there, not c"),
            ({"/packages": "usr"}, "/packages: the volume has the whole image there, not usr"),
            ({"/tools": ""}, "/tools: the volume has nothing there"),
        ):
            with self.assertRaises(SystemExit) as ended:
                join["check_volumes"](volumes, "usr" in volumes.values())
            self.assertTrue(ended.exception.code.startswith(reason), ended.exception.code)


if __name__ == "__main__":
    unittest.main()
