"""A script in a workspace: one of several activities, with the frames and the ending of a run in a pooled sandbox."""

import os
import time

from ..caps import FRAMES_WINDOW_BYTES, HIGH_WATER_BYTES, INPUT_WINDOW_BYTES, MAX_REQUEST_LINE_BYTES
from .activity import ProcessActivity
from .channel import LineBuffer
from .intake import problem_of_request
from .run import Run
from .run_end import collection_of, file_frame, last_frame
from .traffic import Traffic


class ScriptActivity(ProcessActivity):
    """A script. It has the frames and the ending of a run in a pooled sandbox, but its files stay."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self._run = self._traffic = self._collection = None
        self._outbox = _CountedOutbox(workspace.channel.outbox)
        self._missing = frame.get("body_bytes", 0)  # bytes of the request's body that have not arrived yet
        self._body = [] if self._missing else None
        self._lines = LineBuffer()  # long lines arrive in pieces, so that they do not delay other frames
        self._ungranted = 0

    @property
    def is_complete(self):
        return self._missing == 0

    def put_input(self, data):
        self._ungranted += len(data)
        if self._ungranted >= INPUT_WINDOW_BYTES // 4:
            self.grant_input(self._ungranted)
            self._ungranted = 0
        if self.is_complete:
            self._take_lines(data)
            return
        if len(data) > self._missing:
            raise ValueError("the body of a request is longer than its body_bytes")
        self._body.append(data)
        self._missing -= len(data)
        if self.is_complete:
            self.on_complete()

    def on_complete(self):
        """Called when the last byte of its request has arrived."""
        self.workspace.admit(self)

    def _take_lines(self, data):
        for line in self._lines.push(data):
            if self._run is not None and line.startswith(self._run.answer_head):
                self.pass_answer(line)
            else:  # another host may order the fields of an answer differently
                self.workspace.take_frame(line)
        if self._lines.held > MAX_REQUEST_LINE_BYTES:
            raise ValueError(f"a request line is longer than {MAX_REQUEST_LINE_BYTES} bytes")

    def begin(self, spare):
        super().begin(spare)
        spare.become(b"R")
        self.start_run(spare, spare.keeper_pid)

    def start_run(self, process, keeper_pid, others=()):
        """Sends the process its request, and listens to it. `others` are pids of the keeper that do not belong to this script."""
        foreign = (os.getpid(), self.workspace.zygote.pid, *others)
        is_set_up = self.is_set_up_at_once()
        self._run = run = Run(self.frame, process, time.monotonic(), self._outbox, foreign, keeper_pid, is_set_up)
        run.use = self.workspace.count_use()
        run.memory_kills_before = self.workspace.sandbox.memory_kills.count()
        self._traffic = Traffic(run, self.workspace.watcher, self.end, self._on_finished)
        self._traffic.start(self._body)
        self._body = None

    def is_set_up_at_once(self):
        """True if the process announces no end of the setup, because nothing runs before the script."""
        return False

    @property
    def due(self):
        if self.is_ending:
            return self._end_due
        if self._run is None:
            return None
        poll_due = self._run.end_poll.due
        return self._run.clock.due if poll_due is None else min(poll_due, self._run.clock.due)

    def advance(self, now):
        if self.is_ending:
            self.check_end(now)
        elif self._run is not None and now >= self._run.clock.due and self._run.clock.advance(now):
            self.end("timeout")
        elif self._run is not None and self._run.end_poll.finds_end(now):
            self.end(None)

    def take_credit(self, stream, count):
        if stream == "frames":
            self._outbox.unread = max(0, self._outbox.unread - count)

    def apply_back_pressure(self, is_full):
        """Stops reading from the script while the host does not read its frames, or while the channel is full."""
        if self._run is not None and not self.is_ending:
            self._traffic.apply_back_pressure(HIGH_WATER_BYTES + 1 if is_full or self._outbox.is_full else 0)

    def pass_answer(self, line):
        """Forwards an answer to a tool call."""
        if self._run is not None and not self.is_ending:
            self._traffic.pass_answer(line)

    def report_tool_time(self, frame):
        """Reports the time of tools to the clock."""
        if self._run is not None and not self.is_ending:
            self._run.clock.report(frame["executed_ms"] / 1000, frame["executing"], time.monotonic())

    def find_problem(self):
        """Returns (code, message) of the problem that prevents its start, or None."""
        return problem_of_request(self.frame)

    def refuse(self, code, message):
        self.is_over = True
        is_cancelled = code == "cancelled"
        kind = code if code in ("cancelled", "secrets") else "request"
        self.send({"type": "error", "message": message, "traceback": None, "kind": kind})
        cause, by = ("cancelled", "host") if is_cancelled else ("not-started", "harness")
        ending = {"cause": cause, "exit_code": None, "signal": None, "by": by}
        self.send({"type": "script_done", "ending": ending, "reusable": True, "use": 0, **self.extra_end_fields({})})
        self.workspace.on_over(self)

    def cancel(self):
        if self._collection is not None:
            self._collection.stop()
        super().cancel()

    def on_end_begun(self):
        self._traffic.stop()
        self._run.ended_at = time.monotonic()

    def on_dead(self, status, confirmed):
        run = self._run
        run.killed_for = run.killed_for or self.killed_for
        run.status, run.confirmed = status, confirmed
        self._traffic.drain()
        run.send_final_error()
        self.close_spare()
        self.collect()

    def collect(self):
        """Sends the requested files, then the last frame."""
        run = self._run
        if not run.request["collect"]:
            self._finish()
            return
        self._collection = collection_of(run, self.workspace.directory)
        self.workspace.add_job(self, self._send_files())

    def can_send(self):
        """True if the host accepts more frames."""
        return not self._outbox.is_full

    def _on_finished(self):
        self._traffic.wait_for_end()

    def _send_files(self):
        for chunk in self._collection.chunks():
            if chunk is not None:
                self._run.emit(file_frame(*chunk), counted=False)
            yield
        self._finish()

    def _finish(self):
        self.is_over = True
        kills = self.workspace.sandbox.memory_kills.count()
        frame = last_frame(self._run, self._collection, kills, self._run.confirmed)
        self.workspace.channel.send({**frame, **self.extra_end_fields(frame)})
        self.workspace.on_over(self)

    def extra_end_fields(self, _frame):
        """Returns further fields of its last frame."""
        return {}


class _CountedOutbox:
    """The outbox of the channel for one run, with the number of bytes that the host has not acknowledged."""

    def __init__(self, outbox):
        self._outbox = outbox
        self.unread = 0

    @property
    def is_full(self):
        return self.unread > FRAMES_WINDOW_BYTES

    def put(self, line):
        self.unread += len(line)
        self._outbox.put(line)
