"""The broker's state of one run: its output, its counts and its end."""

import codecs
import os
import signal
import time

from ..caps import (
    CALL_HEAD_BYTES,
    FREE_FRAMES,
    JUNK_LINE_BYTES,
    MAX_ARG_BYTES,
    MAX_CALL_ID,
    MAX_CHECK_BYTES,
    MAX_DISPLAY_BYTES,
    MAX_ERROR_MESSAGE,
    MAX_IMPORT,
    MAX_IMPORTS,
    MAX_NULL_PATHS,
    MAX_PATH,
    MAX_LABEL,
    MAX_MISSING_ITEM_CHARS,
    MAX_MISSING_ITEMS,
    MAX_LEVEL,
    MAX_TEXT_PER_FRAME,
    MAX_TOOL_NAME,
    MAX_TRACEBACK,
    PACE_SEC,
    SCRIPT_ERROR_KINDS,
    SMALL_READ_BYTES,
)
from ..text import cut, cut_head
from ..wire import decode, encode
from .channel import LineBuffer
from .clock import Clock
from .displays import Displays
from .ending import ending_of
from .lock_wait import NOTE, LockWait
from .processes import EndPoll
from .processor_time import ProcessorTime
from .to_child import ToChild

_SETUP_OVER = b'{"type":"setup_over"}'  # exactly as the script's process writes it
_DISPLAY_HEAD = b'{"type":"display",'
READ_SIZE = 65536
MAX_WAITING_READS = 16
ANSWER_HEAD = b'{"type":"tool_result",'


class OutputStream:
    """stdout or stderr of a script and of the processes that it started."""

    def __init__(self, name, fd):
        self.name = name
        self.fd = fd
        self.bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def text_of(self, data, final=False):
        """Decodes the next bytes. An incomplete character is kept for the next call."""
        self.bytes += len(data)
        return self._decoder.decode(data, final)


class Run:
    """State of one run from `execute` to `script_done`."""

    def __init__(self, request, spare, started, outbox, harness_pids=(), keeper=None, is_set_up=False):
        self.id = request["execution_id"]
        self.request = request
        self.spare = spare
        self.started = started
        self._alarm = signal.SIGRTMAX if request.get("cell") else signal.SIGALRM  # as session/head.py installs it
        self._wait = LockWait(spare, self._alarm)
        self.clock = self._make_clock(harness_pids, keeper)
        self.stop_parsing_at = None  # None: stop at the time of the kill
        self.end_poll = EndPoll(spare, started)
        self.max_output = request["max_output_bytes"]
        self.timeout_text = f"{request['timeout_sec']:g}"
        self.ended_at = started
        self.killed_for = None  # the first cause for which the broker ended the run
        self.is_set_up = is_set_up  # True once the script may run; its process announces that unless there is nothing to set up
        self._announces_script = not is_set_up
        self.finished = False  # True once the runtime has finished normally
        self.checkpoint = None  # of a cell: what a checkpoint of its state would hold, as its process claims
        self.interrupted = False  # True once the host has requested it
        self._missed_interrupt = False  # True if the signal reached the process before the cell accepted it
        self.imported = []  # modules that it loaded, as the script's process claims
        self.reported_error = self.reported_timeout = False
        self.reported_interrupt = False  # True if the host's interrupt ended it, as the script's process claims
        self.status = None  # of the script's process, as wait(2) gives it
        self.to_child = ToChild(spare.socket.fileno())
        # The first bytes of an answer to one of its calls, as the host of this package writes them. Such a line is forwarded
        # without parsing; any other is parsed first.
        self.answer_head = b'%s"execution_id":%s,' % (ANSWER_HEAD, encode(self.id)[:-1])
        self.use = None  # the number of this run in the sandbox
        self.memory_kills_before = None  # OOM kills before this run
        self.confirmed = False  # True once no process that it started is left
        self.clean = None  # True if files and processes are as before; None: not checked yet
        self.awaits_pong = False  # True while the zygote, which the script could have stopped or killed, has to answer
        self.keeps_process = False  # True if the process serves the next check as well
        self.sent = 0  # bytes that count towards the limit
        self.over = False  # True once its output exceeds the limit
        self._small_frames = 0
        self.streams = [OutputStream("stdout", spare.out_fd), OutputStream("stderr", spare.err_fd)]
        self._lines = LineBuffer()
        self._outbox = outbox
        self.displays = Displays()
        self._max_line = max(self.max_output, MAX_ARG_BYTES + CALL_HEAD_BYTES if request.get("tools") else 0)

    def _make_clock(self, harness_pids, keeper):
        asked = self.request
        if not asked.get("tools"):
            alarm = self._send_alarm if asked.get("cell") else None
            return Clock(self.started, asked["timeout_sec"], on_deadline=alarm, sample=self._wait.sample)
        processor = ProcessorTime(harness_pids, self.spare.pid, below=keeper)
        if asked.get("cell"):
            processor.measure(0)  # so that the time of earlier cells does not count
        wait_sec = asked.get("max_tool_wait_sec") or 0
        return Clock(self.started, asked["timeout_sec"], wait_sec, processor, self._send_alarm, sample=self._wait.sample)

    def _send_alarm(self):
        """Sends the signal that a script without tools gets from a timer of its own."""
        try:
            if self.spare.pid_fd is None:
                os.kill(self.spare.pid, self._alarm)
            else:
                signal.pidfd_send_signal(self.spare.pid_fd, self._alarm)
        except OSError:  # it is gone; or its queue of signals is full on gVisor, and the kill comes
            pass

    @property
    def deadline(self):
        """The time at which the script must end."""
        return self.clock.deadline

    def make_request(self):
        """Creates the request for the script's process."""
        asked = self.request
        return {
            **{name: asked[name] for name in ("script", "inputs", "secrets", "limits") if name in asked},
            # The broker moves the deadline while tools execute, and leaves the timers of a process to its cells.
            "deadline": None if asked.get("tools") or asked.get("cell") else self.deadline,
            "timeout_text": self.timeout_text,
            "announces_script": self._announces_script,
            "tools": asked.get("tools"),
            "tool_sources": asked.get("tool_sources"),
            **({"tool_endpoint": {**asked["tool_endpoint"], "execution_id": self.id}} if asked.get("tool_endpoint") else {}),
            "stdin_base64": asked.get("stdin_base64"),
            "preamble": asked.get("preamble"),
            "postamble": asked.get("postamble"),
            "check": asked.get("check"),
            **({"cell": asked["cell"]} if asked.get("cell") else {}),
        }

    def mark_check_done(self):
        """Marks a check as done. No part of the script was executed, so nothing has to be killed or wiped."""
        self.status, self.confirmed, self.clean, self.keeps_process = 0, True, True, True

    def emit(self, frame, counted=True):
        """Sends a frame of this run, unless it would exceed the output limit."""
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
        """Handles bytes from the script's frame socket."""
        lines = self._lines.push(data)
        blank = lines.count(b"")
        if blank:  # the runtime sends none; counted together, because one by one they would take seconds
            self._charge(blank * JUNK_LINE_BYTES)
            lines = [line for line in lines if line]
        for count, line in enumerate(lines, 1):
            if self.over:
                self.is_set_up = self.is_set_up or _SETUP_OVER in lines[count - 1 :]
                return
            if count % 256 == 0 and time.monotonic() > (self.stop_parsing_at or self.clock.kill_at):
                return
            try:
                self._take_line(line, now)
            except (ValueError, RecursionError, KeyError, TypeError, MemoryError):
                self._charge(len(line) + JUNK_LINE_BYTES)  # not a frame: the script wrote to the descriptor itself
        held = self._lines.held
        if held > self._max_line and not (held <= MAX_DISPLAY_BYTES and self._lines.starts_with(_DISPLAY_HEAD)):
            self.over = True

    def _charge(self, count):
        """Counts bytes that are not sent. Junk takes time to process, so it counts towards the output limit."""
        self.sent += count
        if self.sent > self.max_output:
            self.over = True

    def take_output(self, stream, data, final=False):
        """Forwards bytes that the script, or a process that it started, wrote."""
        text = stream.text_of(data, final)
        for start in range(0, len(text), MAX_TEXT_PER_FRAME):
            if self.over:
                return
            self._emit_output(stream.name, text[start : start + MAX_TEXT_PER_FRAME])
        if text and len(data) < SMALL_READ_BYTES:
            self._small_frames += 1
            if self._small_frames > FREE_FRAMES:
                time.sleep(PACE_SEC)

    def _emit_output(self, name, text):
        """Sends output, or only its beginning if the rest exceeds the limit. Counts only the text, because timing decides how reads
        split it into frames."""
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
            self.emit({"type": "final_result", "data": frame["data"], **_nan_field(frame)})
        elif kind == "intermediate" and "data" in frame:
            label = str(frame.get("label", ""))[:MAX_LABEL]
            self.emit({"type": "intermediate", "label": label, "data": frame["data"], **_nan_field(frame)})
        elif kind == "log":
            level = str(frame.get("level", "info"))[:MAX_LEVEL]
            self.emit({"type": "log", "message": str(frame.get("message", "")), "level": level})
        elif kind == "tool_call" and self.request.get("tools"):
            self._take_call(frame)
        elif kind == "display":
            self._take_display(frame, len(line))
        elif kind == "displays_over":
            self.displays.are_over = True
        elif kind == "check_result" and self.request.get("check"):
            whole = {"whole": frame["whole"] is True} if "whole" in frame else {}
            tools = {"tools": [str(name) for name in frame["tools"]]} if "tools" in frame else {}
            violations = [_violation(each) for each in frame["violations"]]
            self.emit({"type": "check_result", "violations": violations, **whole, **tools})
        elif kind == "error":
            self._take_error(frame, now)
        elif kind == "value" and "data" in frame and self.request.get("cell"):
            self.emit({"type": "value", "data": frame["data"], **_nan_field(frame)})
        elif kind == "setup_over" and not self.is_set_up:
            self.is_set_up = True
        elif kind == "interrupt_missed" and self.request.get("cell") and not self._missed_interrupt:
            self._missed_interrupt = True
            if self.interrupted:  # otherwise the signal was meant for an earlier cell, or came from elsewhere
                self.spare.signal(signal.SIGINT)
        elif kind == "finished":
            self.finished = True
            self.imported = _module_names(frame.get("imported"))
            self.checkpoint = checkpoint_of(frame.get("checkpoint"))
        else:
            raise ValueError("not a frame of a script")

    def _take_call(self, frame):
        """Forwards a tool call. The limit applies to the re-encoded line, in which a script's `1e15` is longer. The host limits the
        number of calls."""
        call_id, name, args = (frame.get(key) for key in ("id", "name", "args"))
        if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(args, dict):
            raise ValueError("not a tool call")
        if not 0 < len(call_id) <= MAX_CALL_ID or not 0 < len(name) <= MAX_TOOL_NAME:
            raise ValueError("not a tool call")
        line = frame.get("line")
        place = {"line": line} if type(line) is int and line > 0 else {}
        call = self._line({"type": "tool_call", "id": call_id, "name": name, **place, "args": args})
        if len(call) > MAX_ARG_BYTES + CALL_HEAD_BYTES:
            raise ValueError("not a tool call")
        self._outbox.put(call)

    def _take_display(self, frame, length):
        """Forwards a display with its position in the output. One beyond the limits counts as output, because it takes time."""
        shown = self.displays.shape(frame)
        self._take_waiting_output()
        line = self._line({**shown, "after": {"stdout": self.streams[0].bytes}})
        if self.displays.admit(len(line)):
            self._outbox.put(line)
        else:
            self._charge(length)

    def _take_waiting_output(self):
        """Reads the stdout that was written before a frame. The number of reads is bounded, because the script can keep writing."""
        stream = self.streams[0]
        for _ in range(MAX_WAITING_READS):
            try:
                data = os.read(stream.fd, READ_SIZE)
            except OSError:  # nothing more to read now
                return
            if not data:
                return
            self.take_output(stream, data)

    def _take_error(self, frame, now):
        claimed = frame.get("kind")
        known = isinstance(claimed, str) and claimed in SCRIPT_ERROR_KINDS
        too_early = claimed == "timeout" and now < self.deadline
        too_late = claimed == "setup" and self.is_set_up
        uncalled = claimed == "interrupted" and not self.interrupted
        if not known or too_early or too_late or uncalled:
            claimed = "exception"
        traceback = frame.get("traceback")
        message = cut(str(frame.get("message", "")), MAX_ERROR_MESSAGE)
        if not self.reported_error:  # the first error counts, as for the host
            self.reported_interrupt = claimed == "interrupted"
        self.reported_error = True
        self.emit(
            {
                "type": "error",
                "message": f"{message}; {NOTE}" if claimed == "timeout" and self._wait.was_endless() else message,
                "traceback": cut(traceback, MAX_TRACEBACK) if isinstance(traceback, str) else None,
                "kind": claimed,
            }
        )
        if claimed == "timeout":
            self.reported_timeout = True
            self.killed_for = self.killed_for or "timeout"

    def send_final_error(self):
        """Sends the error that only the broker can report, once every process has ended and its output is read."""
        message = kind = None
        unexplained = self.killed_for is None and not self.finished and not self.reported_error
        # The script may have reported this in a line that was garbled or beyond the output limit. Or a program has replaced its process
        # (exec), and the signal of the clock has ended that.
        is_timeout = os.WIFEXITED(self.status) or os.WTERMSIG(self.status) == self._alarm
        if unexplained and is_timeout and self.ended_at >= self.deadline:
            self.killed_for = "timeout"
        if self.killed_for == "timeout" and not self.reported_timeout:
            note = f"; {NOTE}" if self._wait.outlasts_alarm() else ""
            message, kind = f"Script timed out after {self.timeout_text}s{note}", "timeout"
        elif self.killed_for == "output-limit":
            message, kind = f"the output went over the limit of {self.max_output} bytes", "output_limit"
        elif self.killed_for == "cancelled":
            message, kind = "the run was cancelled", "cancelled"
        elif self.killed_for is None and not self.finished and os.WIFEXITED(self.status):
            code = os.WEXITSTATUS(self.status)
            message = f"the script's process ended with exit code {code} before the script was done"
            kind = "crash"
        if message is not None:  # sent despite the limit, and counted, so that both sides reach the same number
            line = self._line({"type": "error", "message": message, "traceback": None, "kind": kind})
            self.sent += len(line)
            self._outbox.put(line)

    @property
    def ended_in_setup(self):
        """True if the preamble or a Python tool ended the run, including by exceeding the output limit. False after a cancellation,
        which does not show whether the setup had failed."""
        has_setup = any(self.request.get(name) for name in ("preamble", "tool_sources")) and not self.request.get("check")
        return has_setup and not self.is_set_up and self.killed_for in (None, "timeout", "output-limit")

    def ending(self):
        """Returns the field `ending` of `script_done`: how the script's process ended."""
        return ending_of(self.status, self.killed_for)


def _module_names(names):
    """Returns the valid module names among `names`. They come from the script's process and prove nothing."""
    listed = names[:MAX_IMPORTS] if isinstance(names, list) else []
    texts = [name for name in listed if isinstance(name, str) and len(name) <= MAX_IMPORT and name.isascii()]
    return [name for name in texts if all(part.isidentifier() for part in name.split("."))]


def checkpoint_of(claimed):
    """Returns the grade and the lacks of a checkpoint as a script's process claims them. Invalid types become the lowest grade."""
    fields = claimed if isinstance(claimed, dict) else {}
    grade = fields.get("grade")
    return {"grade": grade if grade in ("whole", "partial", "none") else "none", "lacks": texts_of(fields.get("lacks"))}


def texts_of(listed):
    """Returns the strings of a list that a script's process sent, limited in number and length."""
    texts = listed[:MAX_MISSING_ITEMS] if isinstance(listed, list) else []
    return [cut_head(text, MAX_MISSING_ITEM_CHARS) for text in texts if isinstance(text, str)]


def build_check_run(check):
    """Turns a check into a run of the checker in place of the script, with the same clocks and the same ending."""
    asked = {name: check[name] for name in ("mode", "policy", "names", "allow_modules", "tools")}
    asked.update({name: check[name] for name in ("whole", "files", "list_tools", "preamble", "postamble") if name in check})
    own = {name: check[name] for name in ("execution_id", "script", "timeout_sec")}
    unused = {"inputs": {}, "secrets": {}, "required_secrets": [], "collect": [], "limits": {}}
    return {**unused, **own, "max_output_bytes": MAX_CHECK_BYTES, "check": asked}


def _nan_field(frame):
    """Returns the field `nan_as_null` of a frame with data, if it has one."""
    given = frame.get("nan_as_null")
    if given is None:
        return {}
    count, paths = given["count"], given["paths"]
    if type(count) is not int or count < 1 or type(paths) is not list or len(paths) > MAX_NULL_PATHS:
        raise ValueError("nan_as_null needs a count and paths")
    return {"nan_as_null": {"count": count, "paths": [str(path)[:MAX_PATH] for path in paths]}}


def _violation(found):
    numbers = {key: found[key] for key in ("line", "column")}
    if not all(type(number) is int and number >= 0 for number in numbers.values()):
        raise ValueError("line and column must be integers from 0")
    return {**numbers, **{key: str(found[key]) for key in ("code", "message", "hint")}}
