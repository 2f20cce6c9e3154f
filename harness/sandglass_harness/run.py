"""One run, seen from the broker: what came out of the script's process, what is counted, how it ended."""

import codecs
import os
import signal
import time

from .emit import MAX_LABEL, MAX_LEVEL
from .wire import LineBuffer, decode, encode

MAX_TEXT_PER_FRAME = 64 * 1024
JUNK_LINE = 100  # what a line that is no frame counts beside its length: about the frame that it is not
GRACE_SEC = 0.3  # from the deadline, which the script can see, to the kill, which it can not
_CHILD_KINDS = {"exception", "exit", "syntax", "memory", "timeout"}


class OutputStream:
    """stdout or stderr of a script and of all that it started."""

    def __init__(self, name, fd):
        self.name = name
        self.fd = fd
        self.bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def text_of(self, data, final=False):
        """The text of the bytes so far; a character that is not whole yet waits."""
        self.bytes += len(data)
        return self._decoder.decode(data, final)


class Run:
    """State of one run from `execute` to `script_done`."""

    def __init__(self, request, spare, started, outbox):
        self.id = request["execution_id"]
        self.request = request
        self.spare = spare
        self.started = started
        self.deadline = started + request["timeout_sec"]
        self.kill_at = self.deadline + GRACE_SEC
        self.stop_parsing_at = self.kill_at
        self.max_output = request["max_output_bytes"]
        self.timeout_text = f"{request['timeout_sec']:g}"
        self.ended_at = started
        self.killed_for = None  # the first cause for which the broker ends it
        self.finished = False  # the runtime came to its orderly end
        self.told_error = False
        self.status = None  # of the script's process, as wait(2) gives it
        self.to_child = memoryview(b"")  # what it has not taken yet
        self.confirmed = False  # nothing that it started lives
        self.clean = None  # files and processes are as before; None: not looked at yet
        self.sent = 0
        self.over = False
        self.streams = [OutputStream("stdout", spare.out_fd), OutputStream("stderr", spare.err_fd)]
        self._lines = LineBuffer()
        self._outbox = outbox

    def emit(self, frame, counted=True):
        """Sends a frame of this run, unless it would go over the limit of its output."""
        line = encode({"type": frame.pop("type"), "execution_id": self.id, **frame})
        if counted:
            if self.over or self.sent + len(line) > self.max_output:
                self.over = True
                return
            self.sent += len(line)
        self._outbox.put(line)

    def take_frames(self, data, now):
        """Bytes from the script's frame socket."""
        lines = self._lines.push(data)
        blank = lines.count(b"")
        if blank:  # never from the runtime; taken together, because one by one they would cost whole seconds
            self._charge(blank * JUNK_LINE)
            lines = [line for line in lines if line]
        for count, line in enumerate(lines, 1):
            if self.over or (count % 256 == 0 and time.monotonic() > self.stop_parsing_at):
                return
            try:
                self._take_line(line, now)
            except (ValueError, RecursionError):
                self._charge(len(line) + JUNK_LINE)  # a script wrote to the descriptor itself: no frame
        if self._lines.held > self.max_output:
            self.over = True

    def _charge(self, count):
        """Counts what is not sent: junk costs time, and must end a run like any other output."""
        self.sent += count
        if self.sent > self.max_output:
            self.over = True

    def take_output(self, stream, data, final=False):
        """Bytes that the script, or something it started, wrote."""
        text = stream.text_of(data, final)
        for start in range(0, len(text), MAX_TEXT_PER_FRAME):
            if self.over:
                return
            piece = text[start : start + MAX_TEXT_PER_FRAME]
            self.emit({"type": stream.name, "text": piece})
            if self.over:
                self._emit_what_fits(stream.name, piece)

    def _emit_what_fits(self, name, text):
        """The head of the output that went over the limit."""
        room = self.max_output - self.sent
        while text:
            line = encode({"type": name, "execution_id": self.id, "text": text})
            if len(line) <= room:
                self.sent += len(line)
                self._outbox.put(line)
                return
            text = text[: min(len(text) - 1, len(text) * room // len(line))]

    def _take_line(self, line, now):
        frame = decode(line)
        kind = frame.get("type")
        if kind == "final_result" and "data" in frame:
            self.emit({"type": "final_result", "data": frame["data"]})
        elif kind == "intermediate" and "data" in frame:
            label = str(frame.get("label", ""))[:MAX_LABEL]
            self.emit({"type": "intermediate", "label": label, "data": frame["data"]})
        elif kind == "log":
            level = str(frame.get("level", "info"))[:MAX_LEVEL]
            self.emit({"type": "log", "message": str(frame.get("message", "")), "level": level})
        elif kind == "error":
            self._take_error(frame, now)
        elif kind == "finished":
            self.finished = True
        else:
            raise ValueError("no frame of a script")

    def _take_error(self, frame, now):
        claimed = frame.get("kind")
        known = isinstance(claimed, str) and claimed in _CHILD_KINDS
        if not known or (claimed == "timeout" and now < self.deadline):
            claimed = "exception"
        traceback = frame.get("traceback")
        self.told_error = True
        self.emit(
            {
                "type": "error",
                "message": str(frame.get("message", "")),
                "traceback": traceback if isinstance(traceback, str) else None,
                "kind": claimed,
            }
        )
        if claimed == "timeout" and self.killed_for is None:
            self.killed_for = "timeout"

    def last_words(self):
        """The error that only the broker can tell, once everything is dead and drained."""
        message = kind = None
        unexplained = self.killed_for is None and not self.finished and not self.told_error
        if unexplained and os.WIFEXITED(self.status) and self.ended_at >= self.deadline:
            self.killed_for = "timeout"  # its own words were lost in what it wrote beside them
        if self.killed_for == "timeout" and not self.told_error:
            message, kind = f"Script timed out after {self.timeout_text}s", "timeout"
        elif self.killed_for == "output-limit":
            message, kind = f"the output went over the limit of {self.max_output} bytes", "output_limit"
        elif self.killed_for == "cancelled":
            message, kind = "the run was cancelled", "cancelled"
        elif self.killed_for is None and not self.finished and os.WIFEXITED(self.status):
            code = os.WEXITSTATUS(self.status)
            message = f"the script's process ended with exit code {code} before the script was done"
            kind = "crash"
        if message is not None:
            self.emit({"type": "error", "message": message, "traceback": None, "kind": kind}, counted=False)

    def ending(self):
        """How the script's process ended, in the words of the wire."""
        code = os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else None
        number = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None
        name = None if number is None else _signal_name(number)
        if self.killed_for is not None:
            by = "host" if self.killed_for == "cancelled" else "harness"
            return {"cause": self.killed_for, "exit_code": code, "signal": name, "by": by}
        if name is not None:
            # SIGKILL may come from the kernel (memory) or from the script itself: the host can tell.
            by = "unknown" if name == "SIGKILL" else "script"
            return {"cause": "signal", "exit_code": None, "signal": name, "by": by}
        return {"cause": "exit", "exit_code": code, "signal": None, "by": "script"}


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
