import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = (pathlib.Path(__file__).parent.parent / "unpack.py").read_text(encoding="utf-8")
FILE = {"kind": "file", "mtime": 1_700_000_000, "executable": False}


def entry(header, content=b""):
    head = json.dumps(header).encode()
    return len(head).to_bytes(4, "big") + head + content


def pieces(data, size=1000):
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(len(part).to_bytes(4, "big") + part + bytes(4) for part in parts)  # a heartbeat after each


class UnpackTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.target = folder.name

    def unpack(self, stream):
        """Runs the program with its input left open, as the host does. Returns its exit code, output and error output."""
        command = [sys.executable, "-c", PROGRAM, self.target]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            process.stdin.write(stream)
            process.stdin.flush()
            out = process.stdout.readline()
            process.stdin.close()
            return process.wait(), out, process.stderr.read().decode()

    def test_it_makes_files_directories_and_links_whatever_the_sizes(self):
        large = bytes(3 << 20) + os.urandom(3000)  # inflates far beyond one piece
        stream = b"".join(
            (
                entry({"kind": "directory", "path": "pkg"}),
                entry({**FILE, "path": "pkg/large.bin", "size": len(large)}, large),
                entry({**FILE, "path": "pkg/ü.py", "size": 5, "executable": True}, b"x = 1"),
                entry({**FILE, "path": "empty", "size": 0}),
                entry({"kind": "link", "path": "alias", "target": "pkg/ü.py"}),
                bytes(4),
            )
        )
        self.assertEqual(self.unpack(pieces(zlib.compress(stream, 1))), (0, b"unpacked\n", ""))
        root = pathlib.Path(self.target)
        self.assertEqual((root / "pkg/large.bin").read_bytes(), large)
        self.assertEqual([(root / "alias").read_bytes(), os.readlink(root / "alias")], [b"x = 1", "pkg/ü.py"])
        modes = {path: (root / path).stat().st_mode & 0o777 for path in ("pkg", "pkg/ü.py", "empty")}
        self.assertEqual(modes, {"pkg": 0o755, "pkg/ü.py": 0o755, "empty": 0o644})
        self.assertEqual((root / "empty").stat().st_mtime, 1_700_000_000)

    def test_content_that_ends_with_a_full_part_is_not_waited_for(self):
        size = (1 << 20) - len(entry({**FILE, "path": "zeros", "size": 1 << 20})) - 4
        stream = entry({**FILE, "path": "zeros", "size": size}, bytes(size)) + bytes(4)
        self.assertEqual(len(stream), 1 << 20)
        self.assertEqual(self.unpack(pieces(zlib.compress(stream, 9)))[:2], (0, b"unpacked\n"))

    def test_a_connection_that_ends_is_told(self):
        packed = zlib.compress(entry({**FILE, "path": "a", "size": 4000}, os.urandom(4000)) + bytes(4))
        command = [sys.executable, "-c", PROGRAM, self.target]
        ended = subprocess.run(command, input=pieces(packed)[:2000], capture_output=True)
        self.assertEqual((ended.returncode, ended.stdout), (1, b""))
        self.assertIn(b"the connection ended within a directory", ended.stderr)

    def test_a_directory_that_cannot_be_written_is_told(self):
        stream = entry({**FILE, "path": "gone/a", "size": 0}) + bytes(4)
        code, out, error = self.unpack(pieces(zlib.compress(stream)))
        self.assertEqual((code, out), (1, b""))
        self.assertIn("could not be unpacked: [Errno 2]", error)
