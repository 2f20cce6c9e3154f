import errno
import fcntl
import os
import stat
import struct
import tempfile
import threading
import time
import unittest
from unittest import mock

from sandglass_harness.broker import scratch
from sandglass_harness.broker.scratch import BadPath, Roots, Terminals, put, split_path

from .. import forked
from .scratch_case import ScratchTestCase, remove


class SplitPathTest(unittest.TestCase):
    def test_plain_relative_paths_pass(self):
        rows = {"a": ["a"], "a/b.txt": ["a", "b.txt"], "ü/ ": ["ü", " "], "...": ["..."], "a\nb": ["a\nb"], "-": ["-"]}
        for path, want in rows.items():
            with self.subTest(path):
                self.assertEqual(split_path(path), want)

    def test_whatever_could_lead_elsewhere_is_refused(self):
        bad = ["", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", ".", "./a", "a/.", "a//b", "a/", "a\0b", "x" * 5000]
        for path in bad:
            with self.subTest(path[:20]), self.assertRaises(BadPath):
                split_path(path)


class PutTest(ScratchTestCase):
    def test_pieces_make_a_file_with_its_directories_and_mode(self):
        put(self.root, "in/deep/a.bin", 0o640, 0, b"abc")
        put(self.root, "in/deep/a.bin", 0o640, 3, b"def")
        put(self.root, "empty", 0o755, 0, b"")
        with open(self.path("in/deep/a.bin"), "rb") as file:
            self.assertEqual(file.read(), b"abcdef")
        modes = [stat.S_IMODE(os.stat(self.path(p)).st_mode) for p in ("in/deep/a.bin", "empty")]
        self.assertEqual(modes, [0o640, 0o755])

    def test_offset_0_starts_the_file_anew(self):
        put(self.root, "a", 0o644, 0, b"long text")
        put(self.root, "a", 0o644, 0, b"new")
        with open(self.path("a"), "rb") as file:
            self.assertEqual(file.read(), b"new")

    def test_no_link_is_followed(self):
        outside = tempfile.mkdtemp()
        self.addCleanup(remove, outside)
        os.symlink(outside, self.path("dir"))
        os.symlink(os.path.join(outside, "target"), self.path("file"))
        for path in ("dir/x", "file"):
            with self.subTest(path), self.assertRaises(OSError):
                put(self.root, path, 0o644, 0, b"x")
        self.assertEqual(os.listdir(outside), [])

    def test_a_bad_path_and_a_file_in_the_way_are_errors(self):
        put(self.root, "a", 0o644, 0, b"")
        with self.assertRaises(BadPath):
            put(self.root, "../a", 0o644, 0, b"")
        with self.assertRaises(OSError):
            put(self.root, "a/b", 0o644, 0, b"")

    def test_no_descriptor_is_left_open_whatever_happens(self):
        put(self.root, "a", 0o644, 0, b"")
        before = os.listdir("/proc/self/fd")
        for path in ("b/c", "a/b", "../a", "a"):
            try:
                put(self.root, path, 0o644, 0, b"x")
            except (OSError, BadPath):
                pass
        self.assertEqual(os.listdir("/proc/self/fd"), before)


class WipeTest(ScratchTestCase):
    def wiped(self, make, budget=20.0):
        """Returns (True if the wipe after `make` was confirmed, the names that are left)."""
        roots = Roots([self.root])
        make()
        confirmed = roots.wipe(budget)
        roots.close()
        return confirmed, sorted(os.listdir(self.root)) if confirmed else None

    def test_files_directories_links_fifos_and_sockets_go(self):
        def make():
            import socket

            self.write("a/b/c/file")
            os.symlink("/", self.path("link"))
            os.symlink("missing", self.path("a/broken"))
            os.mkfifo(self.path("a/fifo"))
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(self.path("sock"))
            os.link(self.path("a/b/c/file"), self.path("hard"))

        self.assertEqual(self.wiped(make), (True, []))

    def test_what_a_link_points_to_stays(self):
        outside = tempfile.mkdtemp()
        self.addCleanup(remove, outside)
        with open(os.path.join(outside, "kept"), "w") as file:
            file.write("x")

        def make():
            os.symlink(outside, self.path("link"))
            os.mkdir(self.path("d"))
            os.symlink(outside, self.path("d/link"))

        self.assertEqual((self.wiped(make), os.listdir(outside)), ((True, []), ["kept"]))

    def test_three_thousand_nested_directories_go_without_recursion(self):
        def make():
            at = os.open(self.root, os.O_RDONLY)
            for n in range(3000):
                os.mkdir("d", dir_fd=at)
                deeper = os.open("d", os.O_RDONLY, dir_fd=at)
                if n % 100 == 0:
                    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
                os.close(at)
                at = deeper
            os.close(at)

        self.assertEqual(self.wiped(make), (True, []))

    def test_many_directories_with_directories_of_the_same_names_go(self):
        def make():
            for n in range(30):
                os.makedirs(self.path(f"{n}", "same", "same", "x"))

        self.assertEqual(self.wiped(make), (True, []))

    def test_a_root_that_is_gone_is_not_confirmed(self):
        gone = tempfile.mkdtemp()
        roots = Roots([gone])
        self.addCleanup(roots.close)
        os.rmdir(gone)
        self.assertFalse(roots.wipe(5))

    def as_an_ordinary_user(self, work):
        """Root may enter everything: the modes count for others only."""

        def dropped():
            if os.getuid() == 0:
                os.chown(self.root, 12345, 12345)
                os.setgid(12345)
                os.setuid(12345)
            return work()

        return forked.call(dropped)

    def test_directories_that_shut_out_their_owner_go(self):
        def work():
            def make():
                for mode in (0o000, 0o100, 0o200, 0o400, 0o500):
                    os.makedirs(self.path(f"{mode:o}", "inner", "deep"))
                    self.write(f"{mode:o}/inner/file")
                    os.chmod(self.path(f"{mode:o}", "inner", "deep"), mode)
                    os.chmod(self.path(f"{mode:o}", "inner"), mode)
                    os.chmod(self.path(f"{mode:o}"), mode)

            return self.wiped(make)

        self.assertEqual(self.as_an_ordinary_user(work), [True, []])

    def test_a_root_that_shuts_out_its_owner_is_opened_and_gets_its_mode_back(self):
        def work():
            got = []
            for mode in (0o000, 0o200, 0o400, 0o500, 0o700, 0o777):

                def make(mode=mode):
                    self.write("a/file")
                    os.chmod(self.root, mode)

                got.append([oct(mode), *self.wiped(make), oct(stat.S_IMODE(os.stat(self.root).st_mode))])
            return got

        want = [[oct(mode), True, [], oct(0o755)] for mode in (0o000, 0o200, 0o400, 0o500, 0o700, 0o777)]
        self.assertEqual(self.as_an_ordinary_user(work), want)

    def test_times_and_attributes_of_a_root_carry_nothing_on(self):
        try:
            os.setxattr(self.root, "user.sandglass-test", b"x")
            os.removexattr(self.root, "user.sandglass-test")
            has_xattrs = True
        except OSError:
            has_xattrs = False  # tmpfs knows user.* from Linux 6.6 on

        def make():
            if has_xattrs:
                os.setxattr(self.root, "user.message", b"from the last run")
            os.utime(self.root, ns=(123_456_789, 987_654_321))

        self.assertEqual(self.wiped(make), (True, []))
        now = os.stat(self.root)
        names = os.listxattr(self.root) if has_xattrs else []
        self.assertEqual(([n for n in names if n.startswith("user.")], now.st_mtime_ns), ([], 0))

    def test_a_root_that_nobody_has_touched_is_not_read_again(self):
        roots = self.known_as_clean()
        with mock.patch("sandglass_harness.broker.scratch._is_empty", side_effect=AssertionError("it was read")):
            self.assertTrue(roots.wipe(5))

    def test_the_time_of_a_last_change_is_not_the_one_that_a_script_chose(self):
        choices = {
            "a mode": lambda: os.chmod(self.root, stat.S_IMODE(os.stat(self.root).st_mode)),
            "a file that comes and goes, with the times of before": lambda: (
                self.write("a"),
                os.unlink(self.path("a")),
                os.utime(self.root, (0, 0)),
            ),
        }
        for name, choose in choices.items():
            with self.subTest(name):
                roots = self.known_as_clean()
                before = os.stat(self.root).st_ctime_ns
                while os.stat(self.root).st_ctime_ns == before:
                    choose()
                chosen = os.stat(self.root).st_ctime_ns
                while time.clock_gettime_ns(scratch._CLOCK_REALTIME_COARSE) <= chosen:  # or the broker's has the same tick
                    pass
                self.assertTrue(roots.wipe(5))
                self.assertNotEqual(os.stat(self.root).st_ctime_ns, chosen)

    def test_a_root_is_read_again_while_a_change_could_get_the_same_time(self):
        roots = self.known_as_clean()
        os.utime(self.root, (0, 0))
        changed = os.stat(self.root).st_ctime_ns
        with mock.patch.object(scratch.time, "clock_gettime_ns", return_value=0):
            for _ in range(2):
                self.assertTrue(roots.wipe(5))
                self.assertEqual(set(roots._clean.values()), {None})
        self.assertNotEqual(os.stat(self.root).st_ctime_ns, changed)

    def test_a_root_is_always_read_again_where_the_kernel_does_not_show_changes(self):
        roots = self.known_as_clean()
        roots.shows_changes = False
        os.utime(self.root, (0, 0))
        for _ in range(3):
            self.assertTrue(roots.wipe(5))
            self.assertEqual(set(roots._clean.values()), {None})

    def test_whatever_touches_a_root_that_is_known_as_clean_is_undone(self):
        def flag():
            fd = os.open(self.root, os.O_RDONLY)
            fcntl.ioctl(fd, 0x40086602, struct.pack("=l", 0x80) + bytes(4))  # FS_IOC_SETFLAGS, FS_NOATIME_FL
            os.close(fd)

        touches = {
            "a file": lambda: self.write("a"),
            "a directory that is moved here": lambda: os.rename(tempfile.mkdtemp(dir=os.path.dirname(self.root)), self.path("d")),
            "a file that comes and goes": lambda: (self.write("a"), os.unlink(self.path("a"))),
            "a file that comes, with the times of before": lambda: (self.write("a"), os.utime(self.root, (0, 0))),
            "a mode": lambda: os.chmod(self.root, 0o700),
            "times": lambda: os.utime(self.root, ns=(1, 0)),
            "a listing": lambda: (os.utime(self.root, ns=(5, 5)), os.listdir(self.root)),
            "an attribute": lambda: os.setxattr(self.root, "user.sandglass", b"x"),
            "a flag": flag,
        }
        for name, touch in touches.items():
            with self.subTest(name):
                roots = self.known_as_clean()
                before = self.state_of_root()
                try:
                    touch()
                except OSError as error:
                    if error.errno in (errno.ENOTSUP, errno.ENOTTY):  # tmpfs knows attributes and flags from Linux 6.6 on
                        continue
                    raise
                self.assertTrue(roots.wipe(5))
                self.assertEqual(self.state_of_root(), before)

    def known_as_clean(self):
        """Returns roots that would not be read again, as nothing has changed since the last wipe."""
        roots = Roots([self.root])
        self.addCleanup(roots.close)
        roots.shows_changes = True
        while None in roots._clean.values():
            self.assertTrue(roots.wipe(5))
        return roots

    def state_of_root(self):
        fd = os.open(self.root, os.O_RDONLY | os.O_NOATIME)
        try:
            found = os.fstat(fd)
            try:
                flags = fcntl.ioctl(fd, 0x80086601, bytes(8))  # FS_IOC_GETFLAGS
            except OSError:
                flags = None
            return found.st_mode, found.st_atime_ns, found.st_mtime_ns, os.listdir(fd), os.listxattr(fd), flags
        finally:
            os.close(fd)

    def test_a_bomb_of_files_runs_over_its_budget_and_is_reported(self):
        def make():
            for n in range(3000):
                self.write(f"f{n}", b"")

        roots = Roots([self.root])
        self.addCleanup(roots.close)
        make()
        started = time.monotonic()
        self.assertEqual((roots.wipe(0), time.monotonic() - started < 5), (False, True))
        self.assertEqual((roots.wipe(60), os.listdir(self.root)), (True, []))

    def test_every_root_is_wiped_even_when_one_fails(self):
        other = tempfile.mkdtemp()
        self.addCleanup(remove, other)
        gone = tempfile.mkdtemp()
        roots = Roots([gone, other])
        self.addCleanup(roots.close)
        os.rmdir(gone)
        with open(os.path.join(other, "x"), "w"):
            pass
        self.assertEqual((roots.wipe(5), os.listdir(other)), (False, []))

    def test_no_descriptor_is_left_open(self):
        before = os.listdir("/proc/self/fd")
        self.wiped(lambda: self.write("a/b/c"))
        self.assertEqual(os.listdir("/proc/self/fd"), before)


class TerminalsTest(ScratchTestCase):
    """A directory of one's own stands for /dev/pts: the harness neither creates nor deletes anything there either."""

    def setUp(self):
        super().setUp()
        self.write("ptmx")
        os.chmod(self.path("ptmx"), 0o666)

    def restored(self, make, budget=5.0):
        """Returns (True if it was confirmed after `make`, mode and times of the directory and of its node)."""
        terminals = Terminals(self.root)
        try:
            make()
            confirmed = terminals.restore(budget)
        finally:
            terminals.close()
        found = [os.stat(path) for path in (self.root, self.path("ptmx"))]
        return confirmed, [(oct(stat.S_IMODE(at.st_mode)), at.st_atime_ns, at.st_mtime_ns) for at in found]

    AS_FOUND = [("0o755", 0, 0), ("0o666", 0, 0)]

    def test_what_is_unchanged_is_confirmed(self):
        self.assertEqual(self.restored(lambda: None), (True, self.AS_FOUND))

    def test_modes_and_times_carry_nothing_on_whatever_shuts_out_their_owner(self):
        def work():
            def make():
                for path in (self.path("ptmx"), self.root):
                    os.utime(path, ns=(123_456_789, 987_654_321))
                    os.chmod(path, 0)

            return self.restored(make)

        def owned():
            for path in (self.path("ptmx"), self.root):
                if os.getuid() == 0:
                    os.chown(path, 12345, 12345)
            if os.getuid() == 0:
                os.setgid(12345)
                os.setuid(12345)
            return work()

        self.assertEqual(forked.call(owned), [True, [list(row) for row in self.AS_FOUND]])

    def test_the_time_of_a_last_change_is_not_the_one_that_a_script_chose(self):
        terminals = Terminals(self.root)
        self.addCleanup(terminals.close)
        chosen = []
        for path in (self.root, self.path("ptmx")):
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))  # changes this time alone
            chosen.append(os.stat(path).st_ctime_ns)
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(self.root)) as clock:  # its clock moves in steps of some ms
            while os.stat(clock.name).st_ctime_ns <= max(chosen):
                os.utime(clock.name)
        self.assertTrue(terminals.restore(5.0))
        after = [os.stat(path).st_ctime_ns for path in (self.root, self.path("ptmx"))]
        self.assertTrue(all(now > then for now, then in zip(after, chosen)), (after, chosen))
        self.assertTrue(terminals.restore(5.0))
        self.assertEqual([os.stat(path).st_ctime_ns for path in (self.root, self.path("ptmx"))], after)

    def test_a_terminal_that_goes_in_time_is_waited_for(self):
        def make():
            self.write("0")
            timer = threading.Timer(0.05, os.unlink, [self.path("0")])
            self.addCleanup(timer.join)
            timer.start()

        confirmed, (_, node) = self.restored(make)
        self.assertEqual((confirmed, node), (True, self.AS_FOUND[1]))

    def test_a_terminal_that_stays_is_not_confirmed(self):
        self.assertFalse(self.restored(lambda: self.write("0"), budget=0.01)[0])

    def test_a_node_that_is_gone_is_not_confirmed(self):
        terminals = Terminals(self.root)
        self.addCleanup(terminals.close)
        os.unlink(self.path("ptmx"))
        self.assertFalse(terminals.restore(0.01))

    def test_a_file_system_of_another_owner_is_left_alone(self):
        def as_another():
            if os.getuid() == 0:
                os.setgid(12345)
                os.setuid(12345)
            terminals = Terminals(self.root if os.stat(self.root).st_uid != os.getuid() else "/dev")
            return [terminals.restore(0), os.stat(self.path("ptmx")).st_mtime_ns != 0]

        self.assertEqual(forked.call(as_another), [True, True])

    def test_a_file_system_that_takes_no_times_is_left_alone(self):
        def refuse(*_, **__):
            raise OSError(errno.EROFS, "read-only")

        with mock.patch.object(os, "utime", refuse):
            terminals = Terminals(self.root)
        self.addCleanup(terminals.close)
        self.assertTrue(terminals.restore(0))

    def test_a_missing_file_system_of_terminals_is_confirmed(self):
        self.assertTrue(Terminals(self.path("missing")).restore(0))
