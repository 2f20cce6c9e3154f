"""Files of a workspace against names, links and sizes that scripts choose (WS-04, WS-07, WS-23)."""

import json
import os
import shutil
import socket
import stat
import tempfile
import threading
import time
import unittest
from unittest import mock

from sandglass_harness.broker import paths, scratch
from sandglass_harness.broker.files import Files
from sandglass_harness.broker.pack import BROKEN, PackReader, PackWriter
from sandglass_harness.broker.paths import FileError, is_link


def entry(path, *chunks, mode=0o644):
    header = json.dumps({"path": path, "mode": mode}).encode()
    body = b"".join(len(chunk).to_bytes(4, "big") + chunk for chunk in chunks)
    return len(header).to_bytes(4, "big") + header + body + bytes(4)


def unpack(data):
    """Returns (header, content) of each entry; the content is None if the entry breaks off or has an error."""
    found, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        header = json.loads(data[at + 4 : at + 4 + length])
        at, content = at + 4 + length, b""
        while "error" not in header:
            size = data[at : at + 4]
            at += 4
            if size in (BROKEN, bytes(4)):
                content = content if size == bytes(4) else None
                break
            content += data[at : at + int.from_bytes(size, "big")]
            at += int.from_bytes(size, "big")
        found.append((header, None if "error" in header else content))
    return found


def finished(steps):
    """Runs a generator to its end. Returns its items but None, and its result."""
    items = []
    while True:
        try:
            item = next(steps)
        except StopIteration as end:
            return items, end.value
        if item is not None:
            items.append(item)


class WorkspaceFilesTest(unittest.TestCase):
    def setUp(self):
        top = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, top)
        self.root, self.outside = os.path.join(top, "root"), os.path.join(top, "outside")
        for directory in (self.root, self.outside):
            os.mkdir(directory)
        self.canary = os.path.join(self.outside, "canary")
        self.put_outside("untouched")

    def put_outside(self, text):
        with open(self.canary, "w") as file:
            file.write(text)

    def assert_untouched(self):
        with open(self.canary) as file:
            self.assertEqual(file.read(), "untouched")
        self.assertEqual(os.listdir(self.outside), ["canary"])

    def at(self, path):
        return os.path.join(self.root, path)

    def write(self, *entries):
        writer = PackWriter(self.root)
        try:
            writer.feed(b"".join(entries))
            writer.finish()
        finally:
            writer.abort()
        return writer

    def read(self, *paths, **bounds):
        return unpack(b"".join(PackReader(self.root, list(paths), **bounds).chunks()))

    def assert_refused(self, code, call, *args):
        with self.assertRaises(FileError) as caught:
            call(*args)
        self.assertEqual(caught.exception.code, code, str(caught.exception))

    def test_a_pack_in_any_pieces_gives_the_same_files(self):
        pack = entry("a/b.txt", b"one", b"two", mode=0o755) + entry("empty") + entry("a/c", b"x" * 100_000)
        for size in (1, 3, 1000, len(pack)):
            with self.subTest(size=size):
                writer = PackWriter(self.root)
                for start in range(0, len(pack), size):
                    writer.feed(pack[start : start + size])
                writer.finish()
                self.assertEqual((writer.files, writer.bytes), (3, 100_006))
                found = self.read("a/b.txt", "empty", "a/c")
                self.assertEqual([content for _, content in found], [b"onetwo", b"", b"x" * 100_000])
                self.assertEqual(found[0][0]["mode"], 0o755)

    def test_no_path_leads_out_of_the_workspace(self):
        os.symlink(self.outside, self.at("link"))
        os.symlink(self.canary, self.at("file"))
        for path in ("../outside/new", "/etc/new", "a/../../outside/new", "", "a//b", "./a", "a\0b"):
            with self.subTest(path), self.assertRaises(FileError):
                self.write(entry(path, b"x"))
        self.assert_refused("outside", self.write, entry("link/new", b"x"))
        self.write(entry("file", b"x"))  # takes the place of the link
        self.assert_untouched()
        os.symlink(self.canary, self.at("again"))
        for path in ("link/canary", "again", "../outside/canary", self.canary):
            with self.subTest(path):
                self.assertEqual(self.read(path)[0][0]["error"]["code"], "outside")

    def test_a_link_that_stays_inside_is_read(self):
        self.write(entry("a/b", b"inside"))
        os.symlink("a", self.at("directory"))
        os.symlink("../a/b", self.at("a/up"))
        self.assertEqual([content for _, content in self.read("directory/b", "a/up")], [b"inside", b"inside"])
        os.symlink("loop", self.at("loop"))
        self.assertIn("error", self.read("loop")[0][0])

    def test_links_that_are_swapped_meanwhile_lead_nowhere(self):
        os.mkdir(self.at("a"))
        with open(self.at("a/canary"), "w") as file:
            file.write("inside")
        ended = threading.Event()

        def swap():
            while not ended.is_set():
                try:
                    os.rename(self.at("a"), self.at("b"))
                    os.symlink(self.outside, self.at("a"))
                    os.unlink(self.at("a"))
                    os.rename(self.at("b"), self.at("a"))
                except OSError:  # the writer has made the directory anew
                    shutil.rmtree(self.at("a"), ignore_errors=True)
                    if os.path.exists(self.at("b")) and not os.path.exists(self.at("a")):
                        os.rename(self.at("b"), self.at("a"))

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            give_up_at = time.monotonic() + 1
            for number in range(1000):
                header, content = self.read("a/canary")[0]
                self.assertTrue("error" in header or content == b"inside", content)
                try:
                    self.write(entry("a/new", b"x"))
                except FileError:
                    pass
                if time.monotonic() > give_up_at and number > 10:
                    break
        finally:
            ended.set()
            thread.join()
        self.assert_untouched()

    def test_a_directory_that_takes_the_place_of_a_link_is_entered(self):
        self.write(entry("b/inside", b"inside"))
        os.symlink(self.outside, self.at("a"))

        def find_and_swap(name, directory):
            found = is_link(name, directory)
            if found:
                os.unlink(self.at("a"))
                os.rename(self.at("b"), self.at("a"))
            return found

        with mock.patch("sandglass_harness.broker.paths.is_link", find_and_swap):
            self.assertEqual([content for _, content in self.read("a/inside")], [b"inside"])

    def test_what_is_no_regular_file_neither_blocks_nor_is_read(self):
        os.mkfifo(self.at("fifo"))
        os.mkdir(self.at("directory"))
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        here = os.getcwd()
        os.chdir(self.root)  # the path of a socket is short
        server.bind("socket")
        os.chdir(here)
        paths = ["fifo", "directory", "socket"]
        try:
            os.mknod(self.at("zero"), stat.S_IFCHR | 0o666, os.makedev(1, 5))
            paths.append("zero")
        except PermissionError:  # only root makes devices
            pass
        for path in paths:
            self.assertEqual(self.read(path)[0][0]["error"]["code"], "not_a_file", path)
        self.assertEqual(self.read("missing")[0][0]["error"]["code"], "not_found")
        self.assert_refused("exists", self.write, entry("directory", b"x"))

    def test_a_huge_file_is_refused_by_its_size_and_one_that_shrinks_breaks_off(self):
        with open(self.at("huge"), "wb") as file:
            file.truncate(10 << 30)
        header, _ = self.read("huge", max_file_bytes=1 << 20)[0]
        self.assertEqual(header["error"]["code"], "too_large")
        with open(self.at("shrinks"), "wb") as file:
            file.write(b"x" * 1_000_000)
        pieces = PackReader(self.root, ["shrinks"], None, None).chunks()
        data = next(pieces)
        os.truncate(self.at("shrinks"), 0)
        self.assertEqual(unpack(data + b"".join(pieces))[0][1], None)

    def test_a_wrong_pack_leaves_no_file(self):
        long_header = (20 << 10).to_bytes(4, "big")
        long_chunk = entry("a")[:-4] + (2 << 20).to_bytes(4, "big")
        for data in (long_header, long_chunk, b"\0\0\0\2[]", entry("a", b"x", mode=0o4755), entry(".sandglass-x", b"x")):
            with self.subTest(data[:30]):
                self.assert_refused("invalid", self.write, data)
        self.assert_refused("invalid", self.write, entry("a", b"x")[:-2])
        self.assertEqual(os.listdir(self.root), [])

    def test_the_first_error_ends_a_pack_and_what_was_written_stays(self):
        writer = PackWriter(self.root)
        with self.assertRaises(FileError):
            writer.feed(entry("a", b"1") + entry("../b", b"2") + entry("c", b"3"))
        self.assertEqual((writer.files, os.listdir(self.root)), (1, ["a"]))

    def test_names_are_listed_as_they_are_and_those_that_are_no_text_are_counted(self):
        names = ["-rf", "new\nline", "\x1b[31m", "ü", ".hidden", "a b"]
        for name in names:
            open(self.at(name), "w").close()
        open(os.fsencode(self.root) + b"/\xff", "w").close()
        lists, result = finished(Files(self.root).list("", None, 100, True))
        self.assertEqual(sorted(found["path"] for found in sum(lists, [])), sorted(names))
        self.assertEqual(result, {"skipped": 1, "limits_hit": []})
        lists, _ = finished(Files(self.root).list("", ["*"], 100, False))
        self.assertNotIn(".hidden", [found["path"] for found in sum(lists, [])])
        lists, result = finished(Files(self.root).list("", None, 2, True))
        self.assertEqual((len(sum(lists, [])), result["limits_hit"]), (2, ["max_entries"]))

    def test_thousands_of_names_come_in_slices(self):
        os.mkdir(self.at("many"))
        for number in range(5_000):
            os.close(os.open(self.at(f"many/{number}"), os.O_CREAT | os.O_WRONLY))
        steps, longest, count = Files(self.root).list("many", None, 10_000, False), 0.0, 0
        while True:
            began = time.thread_time()
            step = next(steps, False)
            longest = max(longest, time.thread_time() - began)
            if step is False:
                break
            count += len(step or ())
        self.assertEqual(count, 5_000)
        self.assertLess(longest, 0.2)

    def test_make_stat_and_remove(self):
        files = Files(self.root)
        files.make("a/b", 0o700)
        files.make("a/b", 0o755)  # it exists, and stays as it is
        self.assertEqual(files.stat("a/b")["mode"], 0o700)
        self.write(entry("a/b/c", b"x"))
        os.symlink(self.outside, self.at("a/link"))
        self.assertEqual(files.stat("a/link")["kind"], "link")
        self.assert_refused("not_empty", lambda: finished(files.remove("a", False)))
        finished(files.remove("a", True))
        self.assertEqual(os.listdir(self.root), [])
        self.assert_untouched()
        self.assert_refused("not_found", files.stat, "a")

    def test_a_digest_depends_on_paths_and_contents_alone(self):
        """WS-23: regular files by their content, links by their text, special files not at all."""

        def digest():
            return finished(Files(self.root).digest(""))[1]["sha256"]

        self.write(entry("b", b"2"), entry("a/x", b"1"))
        before = digest()
        os.chmod(self.at("b"), 0o600)
        os.utime(self.at("b"), (0, 0))
        os.mkfifo(self.at("fifo"))
        self.assertEqual(digest(), before)
        os.symlink("b", self.at("link"))
        with_link = digest()
        self.assertNotEqual(with_link, before)
        os.unlink(self.at("link"))
        os.symlink("c", self.at("link"))
        self.assertNotEqual(digest(), with_link)
        os.unlink(self.at("link"))
        self.assertEqual(digest(), before)
        self.write(entry("b", b"3"))
        self.assertNotEqual(digest(), before)


class KernelThatFollowsLinks(unittest.TestCase):
    """gVisor opens what a link leads to in spite of O_NOFOLLOW, if a directory is asked for."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for name, value in (("DIRECTORY", scratch.DIRECTORY & ~os.O_NOFOLLOW), ("FOLLOWS_LINKS", True)):
            patched = mock.patch.object(scratch, name, value)
            patched.start()
            self.addCleanup(patched.stop)

    def test_a_link_is_refused_as_a_directory(self):
        outside = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, outside)
        os.symlink(outside, os.path.join(self.root, "link"))
        with self.assertRaises(NotADirectoryError):
            scratch.open_real_directory(os.path.join(self.root, "link"))
        for act in (lambda: paths.open_to_read(self.root, "link/x"), lambda: paths.open_directory(self.root, "link", ["link"])):
            with self.assertRaises(paths.FileError) as caught:
                act()
            self.assertEqual(caught.exception.code, "outside")

    def test_a_directory_is_opened_as_a_real_directory(self):
        os.makedirs(os.path.join(self.root, "a/b"))
        os.symlink("a", os.path.join(self.root, "inside"))
        with open(os.path.join(self.root, "a/b/c"), "w") as file:
            file.write("x")
        for path in ("a/b/c", "inside/b/c"):
            fd, found = paths.open_to_read(self.root, path)
            os.close(fd)
            self.assertEqual(found.st_size, 1)

if __name__ == "__main__":
    unittest.main()
