import json
import random
import signal
import types
import unittest
import unittest.mock

from sandglass_harness.run import FREE_FRAMES, MAX_TEXT_PER_FRAME, PACE_SEC, SMALL_READ, Run


class Outbox:
    def __init__(self):
        self.data = b""

    def put(self, line):
        self.data += line

    @property
    def frames(self):
        return [json.loads(line) for line in self.data.split(b"\n")[:-1]]


def line(**frame):
    return json.dumps(frame).encode() + b"\n"


def exited(code):
    return code << 8


class RunTestCase(unittest.TestCase):
    maxDiff = None

    def make(self, max_output=1 << 20, timeout=10, pid_fd=-1, **request):
        self.outbox = Outbox()
        request = {"execution_id": "e1", "timeout_sec": timeout, "max_output_bytes": max_output, **request}
        # The broker's end of the frame socket is only asked for its number.
        frames = types.SimpleNamespace(fileno=lambda: -1)
        spare = types.SimpleNamespace(socket=frames, out_fd=-1, err_fd=-1, pid_fd=pid_fd)
        self.run_ = Run(request, spare, 100.0, self.outbox)
        return self.run_

    def take(self, data, now=101.0, **options):
        run = self.make(**options)
        run.take_frames(data, now)
        return self.outbox.frames


class FramesTest(RunTestCase):
    """What the broker takes from a script's process: it sets type and execution id itself."""

    def test_each_frame_of_a_script_goes_on_with_the_brokers_id(self):
        data = line(type="final_result", data={"a": 1}, execution_id="forged", extra=1)
        data += line(type="intermediate", label="half", data=2)
        data += line(type="log", message="m", level="info")
        data += line(type="error", message="e", traceback="t", kind="exit")
        want = [
            {"type": "final_result", "execution_id": "e1", "data": {"a": 1}},
            {"type": "intermediate", "execution_id": "e1", "label": "half", "data": 2},
            {"type": "log", "execution_id": "e1", "message": "m", "level": "info"},
            {"type": "error", "execution_id": "e1", "message": "e", "traceback": "t", "kind": "exit"},
        ]
        self.assertEqual(self.take(data), want)

    def test_what_only_the_broker_may_say_is_dropped(self):
        kinds = ("script_done", "ready", "stdout", "stderr", "file", "pong", "reset_done", "unknown", "")
        self.assertEqual(self.take(b"".join(line(type=kind, text="x", nonce="1") for kind in kinds)), [])

    def test_what_is_no_frame_is_dropped_and_what_follows_is_not(self):
        """HA-10: user writes can not break an event."""
        data = b"print\n{broken\n[1]\n\n\xff\xfe\n" + b"[" * 200_000 + b"\n"
        data += b'{"type":"final_result","data":NaN}\n{"type":"final_result","data":1e999}\n'
        data += b'{"type":"final_result"}\n{"type":["final_result"],"data":1}\n'
        data += line(type="log", message="m")
        self.assertEqual([f["type"] for f in self.take(data)], ["log"])

    def test_fields_of_the_wrong_type_become_text(self):
        data = line(type="log", message={"a": 1}, level=None) + line(type="intermediate", label=5, data=None)
        data += line(type="error", message=None, traceback=7, kind=["x"])
        want = [
            {"type": "log", "execution_id": "e1", "message": "{'a': 1}", "level": "None"},
            {"type": "intermediate", "execution_id": "e1", "label": "5", "data": None},
            {"type": "error", "execution_id": "e1", "message": "None", "traceback": None, "kind": "exception"},
        ]
        self.assertEqual(self.take(data), want)

    def test_a_kind_that_a_script_may_not_claim_becomes_an_exception(self):
        for kind, want in (("cancelled", "exception"), ("output_limit", "exception"), ("syntax", "syntax")):
            with self.subTest(kind):
                self.assertEqual(self.take(line(type="error", message="m", kind=kind))[0]["kind"], want)

    def test_a_timeout_before_the_deadline_is_a_lie(self):
        data = line(type="error", message="Script timed out after 10s", kind="timeout")
        self.assertEqual(self.take(data, now=105.0)[0]["kind"], "exception")
        self.assertEqual((self.run_.killed_for, self.run_.told_error), (None, True))
        self.assertEqual(self.take(data, now=110.5)[0]["kind"], "timeout")
        self.assertEqual(self.run_.killed_for, "timeout")

    def test_labels_and_levels_are_bounded_here_too(self):
        frames = self.take(line(type="log", message="m", level="l" * 999) + line(type="intermediate", label="l" * 9999, data=1))
        self.assertEqual([len(frames[0]["level"]), len(frames[1]["label"])], [64, 1024])

    def test_a_line_may_come_in_pieces(self):
        run = self.make()
        for byte in line(type="log", message="ü", level="info"):
            run.take_frames(bytes([byte]), 101.0)
        self.assertEqual([f["message"] for f in self.outbox.frames], ["ü"])


class LookTest(RunTestCase):
    """Where no descriptor tells of the end of a process (gVisor), the broker looks at it."""

    def test_where_a_descriptor_tells_nobody_looks(self):
        run = self.make()
        run.look_soon()
        self.assertIsNone(run.look_at)

    def test_every_20_ms_and_at_once_when_the_process_seems_to_end_then_less_and_less_often(self):
        run = self.make(pid_fd=None)
        self.assertEqual(run.look_at, 100.02)
        run.look_soon()
        self.assertEqual(run.look_at, 0)
        pauses = []
        for _ in range(9):
            run.look_later(200.0)
            pauses.append(round(run.look_at - 200.0, 6))
        self.assertEqual(pauses, [0.000313, 0.000625, 0.00125, 0.0025, 0.005, 0.01, 0.02, 0.02, 0.02])


class OutputTest(RunTestCase):
    def test_bytes_become_text_wherever_they_are_cut(self):
        run = self.make()
        for byte in "aü€😀".encode():
            run.take_output(run.streams[0], bytes([byte]))
        run.take_output(run.streams[0], b"", final=True)
        self.assertEqual("".join(f["text"] for f in self.outbox.frames), "aü€😀")
        self.assertEqual(run.streams[0].bytes, 10)

    def test_broken_utf8_is_replaced_and_an_unfinished_character_told_at_the_end(self):
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
        with unittest.mock.patch("sandglass_harness.run.time.sleep", naps.append):
            for read in reads:
                run.take_output(run.streams[0], read)
        return naps

    def test_the_first_frames_go_out_as_they_are_read(self):
        self.assertEqual(self.naps([b"x"] * FREE_FRAMES), [])

    def test_later_the_broker_lets_small_writes_gather(self):
        self.assertEqual(self.naps([b"x"] * (FREE_FRAMES + 3)), [PACE_SEC] * 3)

    def test_what_comes_in_much_at_a_time_does_not_wait(self):
        self.assertEqual(self.naps([b"x" * SMALL_READ] * (FREE_FRAMES + 3)), [])


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
        run.last_words()
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

    def test_what_is_not_counted_does_not_count(self):
        run = self.make(max_output=100)
        run.emit({"type": "file", "content_base64": "x" * 5000}, counted=False)
        run.emit({"type": "log", "message": "m", "level": "info"})
        self.assertEqual(([f["type"] for f in self.outbox.frames], run.over), (["file", "log"], False))


class EndingTest(RunTestCase):
    """How a run ended, told by the broker alone."""

    def end(self, status, killed_for=None, finished=False, told=()):
        run = self.make(max_output=1000, timeout=1.5)
        for kind in told:
            run.take_frames(line(type="error", message="m", kind=kind), 102.0)
        run.status, run.killed_for, run.finished = status, killed_for, finished
        run.last_words()
        return [(f["kind"], f["message"]) for f in self.outbox.frames[len(told) :]], run.ending()

    def test_each_cause(self):
        def ending(cause, code=None, name=None, by="script"):
            return {"cause": cause, "exit_code": code, "signal": name, "by": by}

        killed = signal.SIGKILL
        rows = [
            ("done", (exited(0), None, True), [], ending("exit", 0)),
            ("an error that it told", (exited(1), None, True, ["exception"]), [], ending("exit", 1)),
            (
                "os._exit",
                (exited(7),),
                [("crash", "the script's process ended with exit code 7 before the script was done")],
                ending("exit", 7),
            ),
            ("a crash", (signal.SIGSEGV | 0x80,), [], ending("signal", None, "SIGSEGV")),
            ("killed by nobody knows whom", (killed,), [], ending("signal", None, "SIGKILL", "unknown")),
            ("a real-time signal", (40,), [], ending("signal", None, "SIG40")),
            (
                "a timeout that it did not tell",
                (killed, "timeout"),
                [("timeout", "Script timed out after 1.5s")],
                ending("timeout", None, "SIGKILL", "harness"),
            ),
            ("a timeout that it told", (exited(1), "timeout", True, ["timeout"]), [], ending("timeout", 1, None, "harness")),
            (
                "a timeout that it did not tell, after an error that it did",
                (killed, "timeout", False, ["exception"]),
                [("timeout", "Script timed out after 1.5s")],
                ending("timeout", None, "SIGKILL", "harness"),
            ),
            (
                "an error and a timeout that it told",
                (exited(1), "timeout", True, ["exception", "timeout"]),
                [],
                ending("timeout", 1, None, "harness"),
            ),
            (
                "too much output",
                (killed, "output-limit"),
                [("output_limit", "the output went over the limit of 1000 bytes")],
                ending("output-limit", None, "SIGKILL", "harness"),
            ),
            (
                "cancelled",
                (killed, "cancelled"),
                [("cancelled", "the run was cancelled")],
                ending("cancelled", None, "SIGKILL", "host"),
            ),
        ]
        for name, given, words, want in rows:
            with self.subTest(name):
                self.assertEqual(self.end(*given), (words, want))

    def test_the_last_words_are_said_even_when_the_limit_is_used_up(self):
        run = self.make(max_output=10)
        run.over, run.killed_for, run.status = True, "output-limit", signal.SIGKILL
        run.last_words()
        self.assertEqual([f["kind"] for f in self.outbox.frames], ["output_limit"])

    def test_the_time_in_the_message_is_the_one_that_was_asked_for(self):
        texts = {1: "1", 1.0: "1", 0.25: "0.25", 30: "30", 86_400: "86400"}
        self.assertEqual({t: self.make(timeout=t).timeout_text for t in texts}, texts)




class ToolCallTest(RunTestCase):
    CALL = {"type": "tool_call", "id": "1", "name": "search", "args": {"q": [1, "ä"]}}

    def sent(self, *frames, **options):
        """The frames that the host gets, and what they counted."""
        data = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
        return self.take(data, **options), self.run_.sent

    def test_a_call_goes_to_the_host_with_the_id_of_the_run_and_counts_nothing(self):
        frames, counted = self.sent({**self.CALL, "execution_id": "forged", "more": 1}, tools=[{}])
        self.assertEqual((frames, counted), ([{"type": "tool_call", "execution_id": "e1", "id": "1", "name": "search", "args": {"q": [1, "ä"]}}], 0))

    def test_what_is_no_call_counts_as_junk(self):
        wrong = [
            {**self.CALL, "id": 1},
            {**self.CALL, "id": ""},
            {**self.CALL, "id": "x" * 65},
            {**self.CALL, "name": ["search"]},
            {**self.CALL, "name": "x" * 257},
            {**self.CALL, "args": [1]},
            {"type": "tool_call", "id": "1", "name": "search"},
        ]
        for frame in wrong:
            with self.subTest(frame=str(frame)[:80]):
                frames, counted = self.sent(frame, tools=[{}])
                self.assertEqual((frames, counted > 100), ([], True))

    def test_a_run_without_tools_makes_no_call(self):
        frames, counted = self.sent(self.CALL)
        self.assertEqual((frames, counted > 100), ([], True))

    def test_a_line_may_be_as_long_as_a_call_where_there_are_tools(self):
        for tools, over in (([{}], False), (None, True)):
            with self.subTest(tools=tools):
                self.take(b"x" * 5000, max_output=4096, tools=tools)
                self.assertEqual(self.run_.over, over)


class CheckResultTest(RunTestCase):
    VIOLATION = {"code": "c", "line": 1, "column": 0, "message": "m", "hint": "h"}

    def test_what_a_check_found_is_sent_field_by_field(self):
        found = {"type": "check_result", "violations": [{**self.VIOLATION, "more": 1}]}
        frames = self.take(json.dumps(found).encode() + b"\n", check={"mode": "plan"})
        self.assertEqual(frames, [{"type": "check_result", "execution_id": "e1", "violations": [self.VIOLATION]}])

    def test_nobody_else_sends_one_and_a_broken_one_is_junk(self):
        for violations, check in (([self.VIOLATION], None), ([{"code": 1}], {}), ("text", {"mode": "plan"}), ([[]], {"mode": "plan"})):
            with self.subTest(violations=violations):
                line = json.dumps({"type": "check_result", "violations": violations}).encode() + b"\n"
                self.assertEqual((self.take(line, check=check), self.run_.sent > 100), ([], True))
