import base64
import os
import tempfile
import unittest
import unittest.mock

from sandglass_harness.broker import collection
from sandglass_harness.broker.collection import Collection
from sandglass_harness.broker.globs import Matcher

from .. import forked
from .scratch_case import ScratchTestCase, remove


class CollectionTest(ScratchTestCase):
    def test_a_long_walk_pauses_so_that_the_broker_can_look_at_its_clocks(self):
        for n in range(600):
            self.write(f"f{n}")
        with unittest.mock.patch.object(collection, "SLICE_SEC", 0):
            self.assertIn(None, list(Collection(self.root, ["none"]).chunks()))

    def test_a_collection_that_is_stopped_gives_nothing_more(self):
        self.write("a")
        found = Collection(self.root, ["*"])
        found.stop()
        self.assertEqual((list(filter(None, found.chunks())), found.limits_hit), ([], ["max_time"]))

    def collect(self, *patterns, **options):
        """({path: bytes}, limits hit, warnings) of a collection."""
        found = Collection(self.root, list(patterns), **options)
        files = {}
        for path, size, offset, data in filter(None, found.chunks()):  # None is a pause
            self.assertEqual(offset, len(files.get(path, b"")))
            files[path] = files.get(path, b"") + data
            self.assertLessEqual(len(data), collection.FILE_CHUNK_BYTES)
            self.assertGreaterEqual(size, offset + len(data))
        return files, found.limits_hit, [w["message"] for w in found.warnings]

    def names(self, *patterns):
        return list(self.collect(*patterns)[0])

    def test_globs_match_whole_paths(self):
        for path in ("a.csv", "b.txt", ".dot", "out/a.csv", "out/sub/b.csv", "out/sub/deep/c.csv", "other/a.csv", "o[1].x"):
            self.write(path)
        everything = ["a.csv", "b.txt", "o[1].x", "other/a.csv", "out/a.csv", "out/sub/b.csv", "out/sub/deep/c.csv"]
        rows = {
            ("a.csv",): ["a.csv"],
            ("*.csv",): ["a.csv"],
            ("*",): ["a.csv", "b.txt", "o[1].x"],
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

    def test_a_name_with_a_dot_before_it_matches_only_where_the_glob_writes_the_dot(self):
        plain = ["a", "out/a"]
        dotted = [".bashrc", ".git/.lock", ".git/config", ".git/hooks/pre-commit", "out/.env", "out/.git/config"]
        for path in plain + dotted:
            self.write(path)
        rows = {
            ("**",): plain,
            ("**/*",): plain,
            ("*",): ["a"],
            ("?bashrc", "[.]bashrc", "*/config", "**/config", "**/hooks/*"): [],
            (".*",): [".bashrc"],
            (".bash*", "out/.env"): [".bashrc", "out/.env"],
            (".git/**",): [".git/config", ".git/hooks/pre-commit"],
            (".git/.*",): [".git/.lock"],
            ("**/.*",): [".bashrc", "out/.env"],
            ("**/.git/*",): [".git/config", "out/.git/config"],
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
        content = os.urandom(collection.FILE_CHUNK_BYTES * 2 + 5)
        self.write("big", content)
        self.write("empty", b"")
        self.write("even", b"x" * collection.FILE_CHUNK_BYTES)
        self.assertEqual(self.collect("*")[0], {"big": content, "empty": b"", "even": b"x" * collection.FILE_CHUNK_BYTES})

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

    def test_a_file_over_its_cap_is_left_out_and_reported(self):
        self.write("a")
        self.write("b", b"x" * collection.MAX_FILE_BYTES)
        with open(self.path("c"), "wb") as file:
            file.truncate(collection.MAX_FILE_BYTES + 1)
        files, hit, warnings = self.collect("*")
        self.assertEqual((list(files), hit), (["a", "b"], ["max_file_bytes"]))
        self.assertEqual(warnings, ["c: it has 4194305 bytes; a collected file may have 4194304"])

    def test_the_sum_is_capped_too(self):
        for n in range(17):
            with open(self.path(f"f{n:02}"), "wb") as file:
                file.truncate(collection.MAX_FILE_BYTES)
        self.write("g", b"")
        files, hit, _ = self.collect("*")
        self.assertEqual((list(files), hit), ([f"f{n:02}" for n in range(16)] + ["g"], ["max_total_bytes"]))

    def test_a_name_that_is_not_text_is_skipped_and_reported(self):
        with open(os.fsencode(self.root) + b"/\xff\xfe", "wb"):
            pass
        self.write("ok")
        files, _, warnings = self.collect("*")
        self.assertEqual((list(files), len(warnings)), (["ok"], 1))
        self.assertIn("not UTF-8", warnings[0])
        warnings[0].encode()

    def test_a_file_that_cannot_be_read_is_reported(self):
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

    def test_depth_is_bounded_and_reported(self):
        at = self.root
        for _ in range(collection.MAX_FILE_DEPTH + 5):
            at += "/d"
            os.mkdir(at)
            with open(at + "/f", "w"):
                pass
        files, hit, _ = self.collect("**")
        self.assertEqual((len(files), hit), (collection.MAX_FILE_DEPTH, ["max_entries"]))

    def test_a_walk_that_runs_over_its_budget_is_reported(self):
        self.write("a")
        self.assertEqual(self.collect("*", budget_sec=-1), ({}, ["max_time"], []))

    def test_directories_that_nothing_asks_for_are_not_visited(self):
        os.makedirs(self.path("huge/inner"))
        os.chmod(self.path("huge"), 0o755)
        self.write("out/a")
        matcher = Matcher(["out/*", "x/**/y"])
        visits = {d: matcher.can_match_below(d) for d in ("out", "out/sub", "huge", "x", "x/a/b", "")}
        self.assertEqual(
            visits, {"out": True, "out/sub": False, "huge": False, "x": True, "x/a/b": True, "": False}
        )

    def test_a_warning_of_a_long_path_keeps_its_reason_and_a_gap_that_the_host_knows(self):
        """The host must know where a text was cut, so that it redacts a secret that was cut in half."""
        path = "/".join(["d" * 200] * 4) + "/f"
        self.write(path)
        with open(self.path(path), "wb") as file:
            file.truncate(collection.MAX_FILE_BYTES + 1)
        reason = ": it has 4194305 bytes; a collected file may have 4194304"
        whole = path + reason
        half = collection.MAX_WARNING // 2
        gap = f"\n... {len(whole) - 2 * half} characters left out ...\n"
        self.assertEqual(self.collect("**")[2], [whole[:half] + gap + whole[-half:]])

    def test_a_name_that_is_not_text_is_shown_as_it_is_otherwise(self):
        """Not as repr writes it: the host would not find a secret there."""
        with open(os.fsencode(self.root) + b"/'a\"\xff\\", "wb"):
            pass
        self.assertEqual(self.collect("*")[2], ["'a\"\\udcff\\: the name is not UTF-8"])

    def test_warnings_are_bounded(self):
        for n in range(30):
            with open(self.path(f"f{n}"), "wb") as file:
                file.truncate(collection.MAX_FILE_BYTES + 1)
        self.assertEqual(len(self.collect("*")[2]), 20)

    def test_content_survives_base64_of_its_pieces(self):
        content = bytes(range(256)) * 1000
        self.write("a", content)
        pieces = [base64.b64decode(base64.b64encode(data)) for _, _, _, data in filter(None, Collection(self.root, ["a"]).chunks())]
        self.assertEqual(b"".join(pieces), content)
