import base64
import os
import stat
import tempfile
import time
import unittest
import unittest.mock

from sandglass_harness import scratch
from sandglass_harness.scratch import BadPath, Collection, Roots, put, split_path

from . import forked


def remove(path):
    """shutil.rmtree gives up on thousands of nested directories."""
    roots = Roots([path])
    roots.wipe(60)
    roots.close()
    os.rmdir(path)


class ScratchTestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.root = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.chmod(self.root, 0o755)
        self.addCleanup(remove, self.root)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, path, content=b"x"):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "wb") as file:
            file.write(content)


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
        """Whether the wipe was confirmed after `make`, and what is left."""
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

    def test_a_bomb_of_files_runs_over_its_budget_and_is_told(self):
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


class CollectionTest(ScratchTestCase):
    def test_a_long_walk_pauses_so_that_the_broker_can_look_at_its_clocks(self):
        for n in range(600):
            self.write(f"f{n}")
        with unittest.mock.patch.object(scratch, "SLICE_SEC", 0):
            self.assertIn(None, list(Collection(self.root, ["none"]).chunks()))

    def test_a_collection_that_is_stopped_gives_nothing_more(self):
        self.write("a")
        collection = Collection(self.root, ["*"])
        collection.stop()
        self.assertEqual((list(filter(None, collection.chunks())), collection.limits_hit), ([], ["max_time"]))

    def collect(self, *patterns, **options):
        """({path: bytes}, limits hit, warnings) of a collection."""
        collection = Collection(self.root, list(patterns), **options)
        files = {}
        for path, size, offset, data in filter(None, collection.chunks()):  # None is a pause
            self.assertEqual(offset, len(files.get(path, b"")))
            files[path] = files.get(path, b"") + data
            self.assertLessEqual(len(data), scratch.CHUNK)
            self.assertGreaterEqual(size, offset + len(data))
        return files, collection.limits_hit, [w["message"] for w in collection.warnings]

    def names(self, *patterns):
        return list(self.collect(*patterns)[0])

    def test_globs_match_whole_paths(self):
        for path in ("a.csv", "b.txt", ".dot", "out/a.csv", "out/sub/b.csv", "out/sub/deep/c.csv", "other/a.csv", "o[1].x"):
            self.write(path)
        everything = [".dot", "a.csv", "b.txt", "o[1].x", "other/a.csv", "out/a.csv", "out/sub/b.csv", "out/sub/deep/c.csv"]
        rows = {
            ("a.csv",): ["a.csv"],
            ("*.csv",): ["a.csv"],
            ("*",): [".dot", "a.csv", "b.txt", "o[1].x"],
            ("**",): everything,
            ("**/*",): everything,
            ("out/**",): ["out/a.csv", "out/sub/b.csv", "out/sub/deep/c.csv"],
            ("out/*",): ["out/a.csv"],
            ("/out/*",): ["out/a.csv"],
            ("**/*.csv",): ["a.csv", "other/a.csv", "out/a.csv", "out/sub/b.csv", "out/sub/deep/c.csv"],
            ("**/a.csv",): ["a.csv", "other/a.csv", "out/a.csv"],
            ("out/**/c.csv",): ["out/sub/deep/c.csv"],
            ("out/**/**/b.csv",): ["out/sub/b.csv"],
            ("*/a.csv",): ["other/a.csv", "out/a.csv"],
            ("?.txt", "a.csv"): ["a.csv", "b.txt"],
            ("[ab].*",): ["a.csv", "b.txt"],
            ("[!a].txt",): ["b.txt"],
            ("o[[]1].x",): ["o[1].x"],
            ("A.CSV",): [],
            ("out",): [],
            ("",): [],
            ("../*",): [],
            (): [],
        }
        for patterns, want in rows.items():
            with self.subTest(patterns):
                self.assertEqual(self.names(*patterns), want)

    def test_files_come_once_in_the_order_of_their_paths(self):
        for path in ("b", "a/z", "a/b/c", "c", "a0"):
            self.write(path, path.encode())
        files, hit, warnings = self.collect("**", "a/**", "*")
        self.assertEqual(list(files.items()), [(p, p.encode()) for p in ("a/b/c", "a/z", "a0", "b", "c")])
        self.assertEqual((hit, warnings), ([], []))

    def test_a_big_file_comes_in_pieces_and_an_empty_one_in_one(self):
        content = os.urandom(scratch.CHUNK * 2 + 5)
        self.write("big", content)
        self.write("empty", b"")
        self.write("even", b"x" * scratch.CHUNK)
        self.assertEqual(self.collect("*")[0], {"big": content, "empty": b"", "even": b"x" * scratch.CHUNK})

    def test_links_fifos_sockets_and_directories_are_no_files(self):
        import socket

        outside = tempfile.mkdtemp()
        self.addCleanup(remove, outside)
        with open(os.path.join(outside, "secret"), "w") as file:
            file.write("s")
        self.write("real")
        os.symlink("/etc/passwd", self.path("passwd"))
        os.symlink(outside, self.path("outside"))
        os.symlink("real", self.path("link"))
        os.symlink("loop", self.path("loop"))
        os.mkfifo(self.path("fifo"))
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.bind(self.path("sock"))
        os.mkdir(self.path("dir"))
        self.assertEqual(self.collect("**"), ({"real": b"x"}, [], []))

    def test_at_most_a_hundred_files(self):
        for n in range(105):
            self.write(f"f{n:03}")
        files, hit, _ = self.collect("*")
        self.assertEqual((list(files), hit), ([f"f{n:03}" for n in range(100)], ["max_files"]))

    def test_exactly_a_hundred_files_hit_no_limit(self):
        for n in range(100):
            self.write(f"f{n:03}")
        files, hit, _ = self.collect("*")
        self.assertEqual((len(files), hit), (100, []))

    def test_a_file_over_its_cap_is_left_out_and_told(self):
        self.write("a")
        self.write("b", b"x" * scratch.MAX_FILE_BYTES)
        with open(self.path("c"), "wb") as file:
            file.truncate(scratch.MAX_FILE_BYTES + 1)
        files, hit, warnings = self.collect("*")
        self.assertEqual((list(files), hit), (["a", "b"], ["max_file_bytes"]))
        self.assertEqual(warnings, ["c: 4194305 bytes are over the 4194304 of a collected file"])

    def test_the_sum_is_capped_too(self):
        for n in range(17):
            with open(self.path(f"f{n:02}"), "wb") as file:
                file.truncate(scratch.MAX_FILE_BYTES)
        self.write("g", b"")
        files, hit, _ = self.collect("*")
        self.assertEqual((list(files), hit), ([f"f{n:02}" for n in range(16)] + ["g"], ["max_total_bytes"]))

    def test_a_name_that_is_no_text_is_skipped_and_told(self):
        with open(os.fsencode(self.root) + b"/\xff\xfe", "wb"):
            pass
        self.write("ok")
        files, _, warnings = self.collect("*")
        self.assertEqual((list(files), len(warnings)), (["ok"], 1))
        self.assertIn("not UTF-8", warnings[0])
        warnings[0].encode()

    def test_a_file_that_can_not_be_read_is_told(self):
        if os.getuid() == 0:
            os.chmod(self.root, 0o777)

        def work():
            if os.getuid() == 0:
                os.setgid(12345)
                os.setuid(12345)
            self.write("a")
            self.write("b")
            os.chmod(self.path("a"), 0)
            files, _, warnings = self.collect("*")
            return [list(files), warnings]

        self.assertEqual(forked.call(work), [["b"], ["a: Permission denied"]])

    def test_depth_is_bounded_and_told(self):
        at = self.root
        for _ in range(scratch.MAX_WALK_DEPTH + 5):
            at += "/d"
            os.mkdir(at)
            with open(at + "/f", "w"):
                pass
        files, hit, _ = self.collect("**")
        self.assertEqual((len(files), hit), (scratch.MAX_WALK_DEPTH, ["max_entries"]))

    def test_a_walk_that_runs_over_its_budget_is_told(self):
        self.write("a")
        self.assertEqual(self.collect("*", budget_sec=-1), ({}, ["max_time"], []))

    def test_directories_that_nothing_asks_for_are_not_visited(self):
        os.makedirs(self.path("huge/inner"))
        os.chmod(self.path("huge"), 0o755)
        self.write("out/a")
        matcher = scratch._Matcher(["out/*", "x/**/y"])
        visits = {d: matcher.may_hold(d) for d in ("out", "out/sub", "huge", "x", "x/a/b", "")}
        self.assertEqual(
            visits, {"out": True, "out/sub": False, "huge": False, "x": True, "x/a/b": True, "": False}
        )

    def test_a_warning_of_a_long_path_keeps_its_reason_and_a_gap_that_the_host_knows(self):
        """What is cut here is redacted by the host: it must know where, so that no half of a secret is left."""
        path = "/".join(["d" * 200] * 4) + "/f"
        self.write(path)
        with open(self.path(path), "wb") as file:
            file.truncate(scratch.MAX_FILE_BYTES + 1)
        reason = ": 4194305 bytes are over the 4194304 of a collected file"
        whole = path + reason
        half = scratch.MAX_WARNING // 2
        gap = f"\n... {len(whole) - 2 * half} characters left out ...\n"
        self.assertEqual(self.collect("**")[2], [whole[:half] + gap + whole[-half:]])

    def test_a_name_that_is_no_text_is_shown_as_it_is_otherwise(self):
        """Not as repr writes it: the host would not find a secret there."""
        with open(os.fsencode(self.root) + b"/'a\"\xff\\", "wb"):
            pass
        self.assertEqual(self.collect("*")[2], ["'a\"\\udcff\\: the name is not UTF-8"])

    def test_warnings_are_bounded(self):
        for n in range(30):
            with open(self.path(f"f{n}"), "wb") as file:
                file.truncate(scratch.MAX_FILE_BYTES + 1)
        self.assertEqual(len(self.collect("*")[2]), 20)

    def test_content_survives_base64_of_its_pieces(self):
        content = bytes(range(256)) * 1000
        self.write("a", content)
        pieces = [base64.b64decode(base64.b64encode(data)) for _, _, _, data in filter(None, Collection(self.root, ["a"]).chunks())]
        self.assertEqual(b"".join(pieces), content)
