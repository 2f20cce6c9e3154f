"""One run, seen from the broker: what came out of the script's process, what is counted, how it ended."""

import codecs
import os
import signal
import time

from .emit import MAX_LABEL, MAX_LEVEL
from .host_tools import MAX_CALL_BYTES
from .to_child import ToChild
from .wire import LineBuffer, decode, encode

MAX_TEXT_PER_FRAME = 64 * 1024
# Each read of output is a frame, and a frame costs the host more than the text in it. So that the number of frames is
# bounded by time, not by the number of writes, the broker lets small writes gather once there were many of them.
FREE_FRAMES = 1000
SMALL_READ = 4096
PACE_SEC = 0.001  # how much later a deadline or a ping may be looked at
JUNK_LINE = 100  # what a line that is no frame counts beside its length: about the frame that it is not
LOOK_SEC = 0.02  # where no descriptor tells of a process's end (gVisor): how often it is looked at
GRACE_SEC = 0.3  # from the deadline, which the script can see, to the kill, which it can not
MAX_CHECK_BYTES = 4 << 20  # of a check's answer, errors included
MAX_CALL_ID, MAX_TOOL_NAME = 64, 256
CALL_HEAD = 4096  # at most, of a call's line beside its arguments
ANSWER_HEAD = b'{"type":"tool_result",'
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
        self.look_at = None if spare.pid_fd is not None else started + LOOK_SEC
        self._look_sec = LOOK_SEC
        self.max_output = request["max_output_bytes"]
        self.timeout_text = f"{request['timeout_sec']:g}"
        self.ended_at = started
        self.killed_for = None  # the first cause for which the broker ends it
        self.finished = False  # the runtime came to its orderly end
        self.told_error = self.told_timeout = False
        self.status = None  # of the script's process, as wait(2) gives it
        self.to_child = ToChild(spare.socket.fileno())
        # How the answers to its tool calls begin on the wire, as the host writes them.
        self.answer_head = b'%s"execution_id":%s,' % (ANSWER_HEAD, encode(self.id)[:-1])
        self.use = None  # which one it is of those that the sandbox was given
        self.memory_kills_before = None
        self.confirmed = False  # nothing that it started lives
        self.clean = None  # files and processes are as before; None: not looked at yet
        self.awaits_sign = False  # of the zygote, that the script has neither stopped nor killed it
        self.keeps_process = False  # it serves the next one, too
        self.sent = 0  # of what counts towards the limit
        self.over = False
        self._small_frames = 0
        self.streams = [OutputStream("stdout", spare.out_fd), OutputStream("stderr", spare.err_fd)]
        self._lines = LineBuffer()
        self._outbox = outbox
        self._max_line = max(self.max_output, MAX_CALL_BYTES + CALL_HEAD if request.get("tools") else 0)

    def order(self):
        """What the process needs to know to do it."""
        asked = self.request
        return {
            **{name: asked[name] for name in ("script", "inputs", "secrets", "limits")},
            "deadline": self.deadline,
            "timeout_text": self.timeout_text,
            "tools": asked.get("tools"),
            "tool_sources": asked.get("tool_sources"),
            "preamble": asked.get("preamble"),
            "postamble": asked.get("postamble"),
            "check": asked.get("check"),
        }

    def look_soon(self):
        """The script's process seems to end."""
        if self.look_at is not None:
            self.look_at, self._look_sec = 0, LOOK_SEC / 64

    def well_checked(self):
        """A check that ended as it should: nothing of the script was executed, so nothing has to be ended for it."""
        self.status, self.confirmed, self.clean, self.keeps_process = 0, True, True, True

    def look_later(self, now):
        """It lives; a script that only pretended to end costs less and less."""
        self.look_at, self._look_sec = now + self._look_sec, min(self._look_sec * 2, LOOK_SEC)

    def emit(self, frame, counted=True):
        """Sends a frame of this run, unless it would go over the limit of its output."""
        line = self._line(frame)
        if counted:
            if self.over or self.sent + len(line) > self.max_output:
                self.over = True
                return
            self.sent += len(line)
        self._outbox.put(line)

    def _line(self, frame):
        return encode({"type": frame.pop("type"), "execution_id": self.id, **frame})

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
            except (ValueError, RecursionError, KeyError, TypeError, MemoryError):
                self._charge(len(line) + JUNK_LINE)  # a script wrote to the descriptor itself: no frame
        if self._lines.held > self._max_line:
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
            self._emit_output(stream.name, text[start : start + MAX_TEXT_PER_FRAME])
        if text and len(data) < SMALL_READ:
            self._small_frames += 1
            if self._small_frames > FREE_FRAMES:
                time.sleep(PACE_SEC)

    def _emit_output(self, name, text):
        """Sends output, or the head of it that fits. It counts by its text: how reads cut it depends on timing."""
        data = text.encode()
        room = self.max_output - self.sent
        if len(data) > room:
            self.over = True
            text = data[:room].decode(errors="ignore")  # whole characters
            data = text.encode()
        if text:
            self.sent += len(data)
            self._outbox.put(self._line({"type": name, "text": text}))

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
        elif kind == "tool_call" and self.request.get("tools"):
            self._take_call(frame)
        elif kind == "check_result" and self.request.get("check"):
            self.emit({"type": "check_result", "violations": [_violation(v) for v in frame["violations"]]})
        elif kind == "error":
            self._take_error(frame, now)
        elif kind == "finished":
            self.finished = True
        else:
            raise ValueError("no frame of a script")

    def _take_call(self, frame):
        """Counts towards nothing but its own size, which its line has shown; the host bounds how many there are."""
        number, name, args = (frame.get(key) for key in ("id", "name", "args"))
        if not isinstance(number, str) or not isinstance(name, str) or not isinstance(args, dict):
            raise ValueError("no call")
        if not 0 < len(number) <= MAX_CALL_ID or not 0 < len(name) <= MAX_TOOL_NAME:
            raise ValueError("no call")
        line = frame.get("line")
        place = {"line": line} if type(line) is int and line > 0 else {}
        self.emit({"type": "tool_call", "id": number, "name": name, **place, "args": args}, counted=False)

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
        if claimed == "timeout":
            self.told_timeout = True
            self.killed_for = self.killed_for or "timeout"

    def last_words(self):
        """The error that only the broker can tell, once everything is dead and drained."""
        message = kind = None
        unexplained = self.killed_for is None and not self.finished and not self.told_error
        if unexplained and os.WIFEXITED(self.status) and self.ended_at >= self.deadline:
            self.killed_for = "timeout"  # its own words were lost in what it wrote beside them
        if self.killed_for == "timeout" and not self.told_timeout:
            message, kind = f"Script timed out after {self.timeout_text}s", "timeout"
        elif self.killed_for == "output-limit":
            message, kind = f"the output went over the limit of {self.max_output} bytes", "output_limit"
        elif self.killed_for == "cancelled":
            message, kind = "the run was cancelled", "cancelled"
        elif self.killed_for is None and not self.finished and os.WIFEXITED(self.status):
            code = os.WEXITSTATUS(self.status)
            message = f"the script's process ended with exit code {code} before the script was done"
            kind = "crash"
        if message is not None:  # sent whatever the limit, and counted so that both sides come to the same
            line = self._line({"type": "error", "message": message, "traceback": None, "kind": kind})
            self.sent += len(line)
            self._outbox.put(line)

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


def as_run(check):
    """A check is a run of the checker in the script's place, with the same clocks and the same end."""
    asked = {name: check[name] for name in ("mode", "policy", "names", "allow_modules", "tools")}
    asked.update({name: check[name] for name in ("preamble", "postamble") if name in check})
    own = {name: check[name] for name in ("execution_id", "script", "timeout_sec")}
    nothing = {"inputs": {}, "secrets": {}, "required_secrets": [], "collect": [], "limits": {}}
    return {**nothing, **own, "max_output_bytes": MAX_CHECK_BYTES, "check": asked}


def _violation(found):
    numbers = {key: found[key] for key in ("line", "column")}
    if not all(type(number) is int and number >= 0 for number in numbers.values()):
        raise ValueError("no place in a script")
    return {**numbers, **{key: str(found[key]) for key in ("code", "message", "hint")}}


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
