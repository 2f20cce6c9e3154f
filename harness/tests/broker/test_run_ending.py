import signal
from unittest import mock

from .run_case import RunTestCase, exited, line


class LookTest(RunTestCase):
    """The broker polls for the end of a process where no descriptor reports it (gVisor)."""

    def test_a_process_with_a_descriptor_is_not_polled(self):
        run = self.make()
        run.end_poll.poll_soon()
        self.assertIsNone(run.end_poll.due)
        self.assertFalse(run.end_poll.finds_end(1e9))

    def test_every_20_ms_and_at_once_when_the_process_seems_to_end_then_less_and_less_often(self):
        run = self.make(pid_fd=None)
        self.assertEqual(run.end_poll.due, 100.02)
        run.end_poll.poll_soon()
        self.assertEqual(run.end_poll.due, 0)
        run.spare.has_ended = lambda: False
        pauses, now = [], 200.0
        for _ in range(9):
            self.assertFalse(run.end_poll.finds_end(now))
            pauses.append(round(run.end_poll.due - now, 6))
            now = run.end_poll.due
        self.assertEqual(pauses, [0.000313, 0.000625, 0.00125, 0.0025, 0.005, 0.01, 0.02, 0.02, 0.02])
        run.spare.has_ended = lambda: True
        self.assertEqual([run.end_poll.finds_end(now - 1), run.end_poll.finds_end(now + 1)], [False, True])


class AlarmTest(RunTestCase):
    def test_a_process_that_takes_no_alarm_costs_the_broker_nothing(self):
        """gVisor queues 32 signals of a kind, and a script can send and block as many."""
        for problem in (BlockingIOError, ProcessLookupError, PermissionError):
            with self.subTest(problem), mock.patch("os.kill", side_effect=problem) as kill:
                self.make(pid_fd=None, timeout=1, cell={"number": 1, "on_error": "keep"}, tools=[])._send_alarm()
                kill.assert_called_once_with(0, signal.SIGRTMAX)


class EndingTest(RunTestCase):
    """The way a run ended, as the broker alone reports it."""

    def end(self, status, killed_for=None, finished=False, told=()):
        run = self.make(max_output=1000, timeout=1.5)
        for kind in told:
            run.take_frames(line(type="error", message="m", kind=kind), 102.0)
        run.status, run.killed_for, run.finished = status, killed_for, finished
        run.send_final_error()
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

    def test_the_signal_of_the_clock_is_a_timeout_where_a_program_has_replaced_the_script(self):
        def end(status, ended_at, **options):
            run = self.make(max_output=1000, timeout=1.5, **options)
            run.status, run.ended_at = status, ended_at
            run.send_final_error()
            return [(frame["kind"], frame["message"]) for frame in self.outbox.frames[-1:]], run.ending()["cause"], run.ending()["signal"]

        late = [("timeout", "Script timed out after 1.5s")]
        cell = {"cell": {"number": 1, "on_error": "keep"}}
        self.assertEqual(end(signal.SIGALRM, 101.4), ([], "signal", "SIGALRM"))
        self.assertEqual(end(signal.SIGSEGV, 101.5), ([], "signal", "SIGSEGV"))
        self.assertEqual(end(signal.SIGALRM, 101.5, **cell), ([], "signal", "SIGALRM"))
        self.assertEqual(end(signal.SIGALRM, 101.5), (late, "timeout", "SIGALRM"))
        self.assertEqual(end(signal.SIGRTMAX, 101.5, **cell), (late, "timeout", "SIGRTMAX"))

    def test_the_final_error_is_sent_even_when_the_limit_is_used_up(self):
        run = self.make(max_output=10)
        run.over, run.killed_for, run.status = True, "output-limit", signal.SIGKILL
        run.send_final_error()
        self.assertEqual([f["kind"] for f in self.outbox.frames], ["output_limit"])

    def test_the_time_in_the_message_is_the_one_that_was_asked_for(self):
        texts = {1: "1", 1.0: "1", 0.25: "0.25", 30: "30", 86_400: "86400"}
        self.assertEqual({t: self.make(timeout=t).timeout_text for t in texts}, texts)
