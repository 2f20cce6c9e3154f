import json
import signal

from sandglass_harness.caps import JUNK_LINE_BYTES

from .run_case import RunTestCase, line


class FramesTest(RunTestCase):
    """Frames that the broker takes from a script's process: it sets type and execution id itself."""

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
        self.assertEqual((self.run_.killed_for, self.run_.reported_error), (None, True))
        self.assertEqual(self.take(data, now=110.5)[0]["kind"], "timeout")
        self.assertEqual(self.run_.killed_for, "timeout")

    def test_an_interrupt_that_a_cell_has_missed_is_repeated_once_and_no_other_signal(self):
        for interrupted, cell, want in ((True, {"number": 1}, [signal.SIGINT]), (False, {"number": 1}, []), (True, None, [])):
            run, sent = self.make(cell=cell), []
            run.spare.signal = sent.append
            run.interrupted = interrupted
            for _ in range(2):
                run.take_frames(line(type="interrupt_missed"), 101.0)
            self.assertEqual((sent, self.outbox.frames), (want, []))
            self.assertEqual(run.sent, (1 if cell else 2) * (len(line(type="interrupt_missed")) - 1 + JUNK_LINE_BYTES))

    def test_only_the_first_error_of_a_cell_makes_it_interrupted(self):
        failed, stopped = line(type="error", message="e", kind="exception"), line(type="error", message="i", kind="interrupted")
        for data, want in ((failed + stopped, False), (stopped + failed, True)):
            run = self.make(cell={"number": 1})
            run.interrupted = True
            run.take_frames(data, 101.0)
            self.assertIs(run.reported_interrupt, want)

    def test_a_failed_set_up_after_its_end_is_a_lie(self):
        failed = line(type="error", message="the preamble failed: KeyError: 'a'", kind="setup")
        self.assertEqual(self.take(failed)[0]["kind"], "setup")
        self.assertEqual(self.take(line(type="setup_over") + failed)[0]["kind"], "exception")
        self.assertEqual((self.run_.reported_error, self.run_.finished), (True, False))

    def test_a_run_without_set_up_can_claim_no_failure_of_it(self):
        failed = line(type="error", message="the preamble failed: KeyError: 'a'", kind="setup")
        run = self.make(is_set_up=True)
        run.take_frames(failed, 101.0)
        self.assertEqual(self.outbox.frames[0]["kind"], "exception")
        self.assertIs(run.make_request()["announces_script"], False)
        self.assertIs(self.make().make_request()["announces_script"], True)

    def test_a_run_that_ends_in_its_set_up_says_so(self):
        run = self.make()
        self.assertFalse(run.ended_in_setup)  # nothing was given that could have ended it
        run.request["preamble"] = "x = 1"
        self.assertTrue(run.ended_in_setup)
        for killed_for, told in (("timeout", True), ("output-limit", True), ("cancelled", False), (None, True)):
            run.killed_for = killed_for
            self.assertIs(run.ended_in_setup, told)
        run.take_frames(line(type="setup_over"), 101.0)
        self.assertFalse(run.ended_in_setup)

    def test_modules_that_a_run_reports_are_bounded_names(self):
        names = [1, "a", "a.b_1", "a.", ".a", "a b", "é", "a\nb", "", "x" * 201, None, ["a"], "y" * 200]
        for told, want in ((names, ["a", "a.b_1", "y" * 200]), ([f"m{n}" for n in range(99)], [f"m{n}" for n in range(32)]), ("ab", []), ({}, [])):
            run = self.make()
            run.take_frames(line(type="finished", imported=told), 101.0)
            self.assertEqual((run.finished, run.imported), (True, want))

    def test_the_end_of_the_set_up_is_seen_behind_a_flood_of_output(self):
        """The script wrote it before its flood, so it is in the socket when the flood is there."""
        over = b'{"type":"setup_over"}\n'
        for frames in ([over], [b"x\n" * 100_000 + over], [b"x\n" * 100_000, b"x\n", over[:5], over[5:]]):
            run = self.make(max_output=1000)
            run.request["preamble"] = "x = 1"
            run.take_output(run.streams[0], b"x" * 2000)
            run.killed_for = "output-limit"
            self.assertTrue(run.over and run.ended_in_setup)
            for data in frames:
                run.take_frames(data, 101.0)
            self.assertFalse(run.ended_in_setup)

    def test_the_end_of_the_set_up_is_said_once_and_to_the_broker_alone(self):
        over = line(type="setup_over")
        self.assertEqual(self.take(over), [])
        self.assertEqual(self.run_.sent, 0)
        self.run_.take_frames(over * 3, 101.0)
        self.assertEqual((self.outbox.frames, self.run_.sent), ([], 3 * (len(over) - 1 + JUNK_LINE_BYTES)))

    def test_labels_and_levels_are_bounded_here_too(self):
        frames = self.take(line(type="log", message="m", level="l" * 999) + line(type="intermediate", label="l" * 9999, data=1))
        self.assertEqual([len(frames[0]["level"]), len(frames[1]["label"])], [64, 1024])

    def test_errors_are_bounded_here_too(self):
        (frame,) = self.take(line(type="error", message="m" * 500_000, traceback="t" * 500_000))
        for name, letter, most in (("message", "m", 16 << 10), ("traceback", "t", 64 << 10)):
            half = letter * (most // 2)
            self.assertEqual(frame[name], f"{half}\n... {500_000 - most} characters left out ...\n{half}")

    def test_nans_that_became_null_go_on_and_anything_else_in_their_place_is_junk(self):
        nulls = {"count": 7, "paths": ["$.a", "$" + "b" * 999]}
        frames = self.take(line(type="final_result", data=None, nan_as_null={**nulls, "more": 1}))
        self.assertEqual(frames[0]["nan_as_null"], {"count": 7, "paths": ["$.a", "$" + "b" * 399]})
        for wrong in (1, [], {}, {"count": 0, "paths": []}, {"count": True, "paths": []}, {"count": 9, "paths": ["$"] * 6}, {"count": 1, "paths": "$"}):
            with self.subTest(wrong):
                self.assertEqual(self.take(line(type="intermediate", label="l", data=1, nan_as_null=wrong)), [])

    def test_a_line_may_come_in_pieces(self):
        run = self.make()
        for byte in line(type="log", message="ü", level="info"):
            run.take_frames(bytes([byte]), 101.0)
        self.assertEqual([f["message"] for f in self.outbox.frames], ["ü"])


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

    def test_a_call_that_becomes_longer_than_the_host_takes_counts_as_junk(self):
        """The broker writes `1e15` as `1000000000000000.0`."""
        args = b'{"a":[' + b"1e15," * ((4 << 20) // 5 - 100) + b"1]}"
        data = b'{"type":"tool_call","id":"1","name":"x","args":' + args + b"}\n"
        self.assertEqual(self.take(data, max_output=8 << 20, tools=[{}]), [])
        self.assertGreater(self.run_.sent, len(args))

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

    def test_what_a_check_says_about_the_whole_answer_is_sent_as_yes_or_no(self):
        for told, sent in ((True, True), (False, False), ("yes", False)):
            line = json.dumps({"type": "check_result", "violations": [], "whole": told}).encode() + b"\n"
            frames = self.take(line, check={"mode": "plan"})
            self.assertEqual(frames, [{"type": "check_result", "execution_id": "e1", "violations": [], "whole": sent}])

    def test_the_tools_that_a_check_found_are_sent_as_names(self):
        line = json.dumps({"type": "check_result", "violations": [], "tools": ["pay", 7]}).encode() + b"\n"
        frames = self.take(line, check={"mode": "plan"})
        self.assertEqual(frames, [{"type": "check_result", "execution_id": "e1", "violations": [], "tools": ["pay", "7"]}])

    def test_only_a_check_sends_one_and_a_broken_one_is_junk(self):
        plan = {"mode": "plan"}
        misplaced = [[{**self.VIOLATION, "column": number}] for number in (-1, 1e300, 1.5, "1", None, True)]
        rows = [([self.VIOLATION], None), ([{"code": 1}], {}), ("text", plan), ([[]], plan), *((one, plan) for one in misplaced)]
        for violations, check in rows:
            with self.subTest(violations=violations):
                line = json.dumps({"type": "check_result", "violations": violations}).encode() + b"\n"
                self.assertEqual((self.take(line, check=check), self.run_.sent > 100), ([], True))
