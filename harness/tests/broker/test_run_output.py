import random
import unittest
import unittest.mock

from sandglass_harness.caps import FREE_FRAMES, MAX_TEXT_PER_FRAME, PACE_SEC, SMALL_READ_BYTES

from .run_case import RunTestCase, exited, line


class OutputTest(RunTestCase):
    def test_bytes_become_text_wherever_they_are_cut(self):
        run = self.make()
        for byte in "aü€😀".encode():
            run.take_output(run.streams[0], bytes([byte]))
        run.take_output(run.streams[0], b"", final=True)
        self.assertEqual("".join(f["text"] for f in self.outbox.frames), "aü€😀")
        self.assertEqual(run.streams[0].bytes, 10)

    def test_broken_utf8_is_replaced_and_an_unfinished_character_reported_at_the_end(self):
        run = self.make()
        run.take_output(run.streams[1], b"a\xffb\xc3")
        run.take_output(run.streams[1], b"", final=True)
        want = [("stderr", "a\ufffdb"), ("stderr", "\ufffd")]
        self.assertEqual([(f["type"], f["text"]) for f in self.outbox.frames], want)

    def test_much_text_comes_in_bounded_frames(self):
        run = self.make(max_output=1 << 24)
        run.take_output(run.streams[0], b"x" * 300_000)
        sizes = [len(f["text"]) for f in self.outbox.frames]
        self.assertEqual((sum(sizes), max(sizes) <= MAX_TEXT_PER_FRAME), (300_000, True))


class PaceTest(RunTestCase):
    """Each read is a frame: a script that writes byte by byte must not make as many as it writes bytes."""

    def naps(self, reads):
        run = self.make(max_output=1 << 30)
        naps = []
        with unittest.mock.patch("sandglass_harness.broker.run.time.sleep", naps.append):
            for read in reads:
                run.take_output(run.streams[0], read)
        return naps

    def test_the_first_frames_go_out_as_they_are_read(self):
        self.assertEqual(self.naps([b"x"] * FREE_FRAMES), [])

    def test_later_the_broker_lets_small_writes_gather(self):
        self.assertEqual(self.naps([b"x"] * (FREE_FRAMES + 3)), [PACE_SEC] * 3)

    def test_what_comes_in_much_at_a_time_does_not_wait(self):
        self.assertEqual(self.naps([b"x" * SMALL_READ_BYTES] * (FREE_FRAMES + 3)), [])


class LimitTest(RunTestCase):
    """EX-05's limit, counted where a script can not reach it."""

    def counted(self, pieces, stream=0):
        run = self.make(max_output=1 << 20)
        for piece in pieces:
            run.take_output(run.streams[stream], piece)
        run.take_output(run.streams[stream], b"", final=True)
        return run.sent

    def test_output_counts_by_its_text_however_it_is_read(self):
        rows = {b"": 0, b"plain": 5, "ü€😀".encode(): 9, b'\0\n"\\': 4, b"a\xffb": 5, b"\xc3": 3, "\u2028".encode(): 3}
        for data, want in rows.items():
            for stream in (0, 1):
                with self.subTest(data, stream=stream):
                    singles = [data[n : n + 1] for n in range(len(data))]
                    self.assertEqual((self.counted([data], stream), self.counted(singles, stream)), (want, want))

    def test_bytes_that_are_no_utf8_count_the_same_wherever_they_are_cut(self):
        dice = random.Random(1)
        for _ in range(300):
            data = bytes(dice.choice(b"a\x80\xbf\xc3\xe2\x82\xac\xed\xa0\xf0\x9f\x98\xf4\xff") for _ in range(12))
            cut = dice.randrange(len(data))
            with self.subTest(data, cut=cut):
                self.assertEqual(self.counted([data[:cut], data[cut:]]), self.counted([data]))

    def test_exactly_the_limit_of_output_passes_and_a_byte_more_does_not(self):
        for limit, over in ((7, False), (6, True)):
            run = self.make(max_output=limit)
            for piece in (b"abc", "ü".encode(), b"de"):
                run.take_output(run.streams[0], piece)
            self.assertEqual((run.over, "".join(f["text"] for f in self.outbox.frames)), (over, "abcüde"[: limit - 1]))

    def test_the_harnesss_own_closing_error_counts_and_is_sent_whatever_the_limit(self):
        run = self.make(max_output=100)
        run.take_output(run.streams[0], b"x" * 100)
        run.status = exited(7)
        run.send_final_error()
        closing = self.outbox.data.split(b"\n")[1]
        self.assertEqual((run.sent, run.over, run.killed_for), (100 + len(closing) + 1, False, None))

    def test_exactly_the_limit_passes_and_a_byte_more_does_not(self):
        frame = line(type="log", message="m", level="info")
        self.take(frame)
        size = len(self.outbox.data)
        self.assertEqual((len(self.take(frame, max_output=size)), self.run_.over), (1, False))
        self.assertEqual((len(self.take(frame, max_output=size - 1)), self.run_.over), (0, True))

    def test_frames_and_output_count_together(self):
        run = self.make(max_output=300)
        run.take_frames(line(type="log", message="x" * 100, level="info"), 101.0)
        run.take_output(run.streams[0], b"y" * 200)
        frames = [(f["type"], len(f.get("text", ""))) for f in self.outbox.frames]
        self.assertEqual((frames[0], frames[1][0], run.over), (("log", 0), "stdout", True))
        self.assertTrue(0 < frames[1][1] < 200)

    def test_of_the_output_that_goes_over_the_limit_the_head_is_kept(self):
        for text in ("x" * 50_000, "ü" * 50_000, "\0" * 50_000, "😀" * 50_000, '"\n' * 25_000):
            for limit in (1, 2, 3, 4, 10, 1000, 12_345):
                with self.subTest(text=text[:2], limit=limit):
                    run = self.make(max_output=limit)
                    run.take_output(run.streams[0], text.encode())
                    kept = "".join(f["text"] for f in self.outbox.frames)
                    size = len(kept.encode())
                    self.assertTrue(text.startswith(kept))
                    # Whole characters only: of the last one, up to three bytes may not fit.
                    self.assertTrue(limit - 4 < size <= limit)
                    self.assertEqual((run.over, run.sent), (True, size))

    def test_nothing_follows_once_it_is_over(self):
        data = line(type="log", message="x" * 500, level="info") + line(type="log", message="y", level="info")
        self.assertEqual((self.take(data, max_output=300), self.run_.over), ([], True))

    def test_a_line_without_an_end_is_over_before_it_ends(self):
        run = self.make(max_output=1000)
        for _ in range(3):
            run.take_frames(b"x" * 400, 101.0)
        self.assertTrue(run.over)

    def test_uncounted_frames_do_not_count_towards_the_limit(self):
        run = self.make(max_output=100)
        run.emit({"type": "file", "content_base64": "x" * 5000}, counted=False)
        run.emit({"type": "log", "message": "m", "level": "info"})
        self.assertEqual(([f["type"] for f in self.outbox.frames], run.over), (["file", "log"], False))
