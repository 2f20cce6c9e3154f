"""What the activities of a workspace have in common, and the two that own processes: scripts and programs."""

import fcntl
import json
import os
import signal
import struct
import termios
import time

from ..caps import FRAMES_WINDOW_BYTES, HIGH_WATER_BYTES, INPUT_WINDOW_BYTES
from ..wire import encode
from .channel import LineBuffer, Outbox
from .intake import problem_of_request
from .run import Run, name_of_signal
from .run_end import collection_of, file_frame, last_frame
from .sources import Source
from .to_child import ToChild
from .traffic import Traffic

NO_LIMIT = 1 << 40  # bytes
END_SEC = 0.5  # from the order to end an activity to its confirmed end


class Activity:
    """One activity, from its request to its last frame. `host` is the workspace that it belongs to."""

    needs_process = False

    def __init__(self, host, frame):
        self.host = host
        self.frame = frame
        self.id = frame["execution_id"]
        self.id_json = encode(self.id)[:-1]
        self.started = time.monotonic()
        self.is_over = False

    @property
    def due(self):
        """The time of the next call of advance(), or None."""
        return None

    def advance(self, now):
        """Does what is due."""

    def find_problem(self):
        """Returns (code, message) of what keeps it from starting, or None."""
        return None

    def put_input(self, data):
        """Takes bytes of the host."""

    def end_input(self):
        """The host has no more bytes."""

    def take_credit(self, stream, count):
        """The host has taken bytes of a stream."""

    def refuse(self, code, message):
        """Ends it before it began."""
        self.finish(error={"code": code, "message": message})

    def cancel(self):
        """Ends it because the host wants so."""
        self.refuse("cancelled", "the activity was cancelled")

    def send(self, frame):
        """Sends a frame of this activity."""
        self.host.channel.send({"type": frame.pop("type"), "execution_id": self.id, **frame})

    def grant_input(self, count):
        """Tells the host that it may send as many more bytes."""
        if count:
            self.send({"type": "credit", "stream": "stdin", "bytes": count})

    def finish(self, ending=None, error=None, result=None, confirmed=True):
        """Sends the last frame."""
        if self.is_over:
            return
        self.is_over = True
        duration = round((time.monotonic() - self.started) * 1000, 3)
        frame = {"type": "activity_done", "ending": ending, "error": error, "result": result}
        self.send({**frame, "duration_ms": duration, "confirmed": confirmed})
        self.host.on_over(self)


class ProcessActivity(Activity):
    """An activity with processes, which its keeper ends."""

    needs_process = True

    def __init__(self, host, frame):
        super().__init__(host, frame)
        self.spare = None
        self.killed_for = None
        self._end_due = None  # the time at which its processes must be gone
        self._confirmed = True

    @property
    def is_ending(self):
        """True once its keeper was told to end it."""
        return self._end_due is not None

    def begin(self, spare):
        """Starts, with the process that waits in `spare`."""
        self.spare = spare
        self.host.watcher.watch_read(spare.control.fileno(), lambda _event: self._on_keeper())

    def end(self, cause):
        """Has its processes ended: the first has ended itself (None), or must end for a cause."""
        if self.is_ending or self.spare is None:
            return
        self.killed_for = self.killed_for or cause
        self._end_due = time.monotonic() + END_SEC
        self.on_end_begun()
        try:
            self.spare.ask_to_end()
        except OSError:
            self._on_lost_keeper()

    def cancel(self):
        """Ends it because the host wants so."""
        if self.spare is None:
            super().cancel()
        else:
            self.end("cancelled")

    def on_end_begun(self):
        """Called once, before the processes are killed."""

    def on_dead(self, status, confirmed):
        """Called when no process is left, or too much time has passed. `status` is that of the first, as wait(2) gives it."""
        raise NotImplementedError

    def check_end(self, now):
        """Gives the end up if it takes too long: then the sandbox ends."""
        if self._end_due is not None and now >= self._end_due:
            self._close_keeper()
            self.on_dead(signal.SIGKILL, False)
            self.host.end_sandbox()

    def close_spare(self):
        """Closes the descriptors of its processes."""
        if self.spare is not None:
            self.spare.close()

    def _on_keeper(self):
        answer = self.spare.read_answer()
        if answer is None or not self.is_ending:
            self._on_lost_keeper()
            return
        status, gone = answer
        self._close_keeper()
        self.on_dead(status, gone)
        if not gone:
            self.host.end_sandbox()

    def _on_lost_keeper(self):
        if not self.is_ending:
            self._end_due = time.monotonic() + END_SEC
            self.on_end_begun()
        self._close_keeper()
        confirmed = self.host.end_orphans()
        self.on_dead(self.host.sandbox.reaper.status_of(self.spare.pid), confirmed)
        if not confirmed:
            self.host.end_sandbox()

    def _close_keeper(self):
        self.host.watcher.forget(self.spare.control.fileno())
        self._end_due = float("inf")  # nobody has to answer any more


class ScriptActivity(ProcessActivity):
    """A script. Its frames and its end are those of a run in a pooled sandbox, but that its files stay."""

    def __init__(self, host, frame):
        super().__init__(host, frame)
        self._run = self._traffic = self._collection = None
        self._taken = _CountedOutbox(host.channel.outbox)

    def begin(self, spare):
        super().begin(spare)
        spare.become(b"R")
        harness = (os.getpid(), self.host.zygote.pid)
        self._run = run = Run(self.frame, spare, time.monotonic(), self._taken, harness, keeper=spare.keeper_pid)
        run.use = self.host.count_use()
        run.memory_kills_before = self.host.sandbox.memory_kills.count()
        self._traffic = Traffic(run, self.host.watcher, self.end, self._on_finished)
        self._traffic.start()

    @property
    def due(self):
        if self.is_ending:
            return self._end_due
        return None if self._run is None else self._run.clock.due

    def advance(self, now):
        if self.is_ending:
            self.check_end(now)
        elif self._run is not None and now >= self._run.clock.due and self._run.clock.advance(now):
            self.end("timeout")

    def take_credit(self, stream, count):
        if stream == "frames":
            self._taken.unread = max(0, self._taken.unread - count)

    def apply_back_pressure(self, is_full):
        """Stops reading from the script while the host does not read its frames, or those of others."""
        if self._run is not None and not self.is_ending:
            self._traffic.apply_back_pressure(HIGH_WATER_BYTES + 1 if is_full or self._taken.is_full else 0)

    def pass_answer(self, line):
        """Passes an answer to a tool call on."""
        if self._run is not None and not self.is_ending:
            self._traffic.pass_answer(line)

    def report_tool_time(self, frame):
        """Passes the time of tools on to the clock."""
        if self._run is not None and not self.is_ending:
            self._run.clock.report(frame["executed_ms"] / 1000, frame["executing"], time.monotonic())

    def find_problem(self):
        """Returns (code, message) of what keeps it from starting, or None."""
        return problem_of_request(self.frame)

    def refuse(self, code, message):
        self.is_over = True
        is_cancelled = code == "cancelled"
        kind = code if code in ("cancelled", "secrets") else "request"
        self.send({"type": "error", "message": message, "traceback": None, "kind": kind})
        cause, by = ("cancelled", "host") if is_cancelled else ("not-started", "harness")
        ending = {"cause": cause, "exit_code": None, "signal": None, "by": by}
        self.send({"type": "script_done", "ending": ending, "reusable": True, "use": 0})
        self.host.on_over(self)

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
        if not run.request["collect"]:
            self._finish()
            return
        self._collection = collection_of(run, self.host.workspace)
        self.host.add_job(self, self._send_files())

    def can_send(self):
        """True if the host takes more frames."""
        return not self._taken.is_full

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
        kills = self.host.sandbox.memory_kills.count()
        self.host.channel.send(last_frame(self._run, self._collection, kills, self._run.confirmed))
        self.host.on_over(self)


class _CountedOutbox:
    """The outbox of the channel for one run, with the number of bytes that the host has not taken yet."""

    def __init__(self, outbox):
        self._outbox = outbox
        self.unread = 0

    @property
    def is_full(self):
        return self.unread > FRAMES_WINDOW_BYTES

    def put(self, line):
        self.unread += len(line)
        self._outbox.put(line)


class ProgramActivity(ProcessActivity):
    """A program: its input, its output as bytes, its end."""

    def __init__(self, host, frame):
        super().__init__(host, frame)
        timeout = frame["timeout_sec"]
        self._deadline = None if timeout is None else self.started + timeout
        self._sources = []
        self._input = None
        self._terminal = None
        self._error = None
        self._lines = LineBuffer()
        self._to_child = None
        self._status = None
        self._early_input, self._ends_early = [], False
        self._has_run = False

    @property
    def due(self):
        if self.is_ending:
            return self._end_due
        return self._deadline

    def advance(self, now):
        if self.is_ending:
            self.check_end(now)
        elif self._deadline is not None and now >= self._deadline:
            if self.spare is None:
                self.refuse("busy", "no process could be made before the timeout")
            else:
                self.end("timeout")

    def begin(self, spare):
        super().begin(spare)
        window, tty = self.frame["window"], self.frame["tty"]
        given = []
        if tty is not None:
            self._terminal, slave = os.openpty()
            _resize(self._terminal, tty["rows"], tty["columns"])
            given.append(slave)
            self._input = _InputPipe(self, os.dup(self._terminal))
            os.set_blocking(self._terminal, False)
            self._add_source(self._terminal, b"stdout", window)
        else:
            if self.frame["stdin"] == "pipe":
                read, write = os.pipe()
                os.set_blocking(write, False)
                given.append(read)
                self._input = _InputPipe(self, write)
            self._add_source(spare.out_fd, b"stdout", window)
            self._add_source(spare.err_fd, b"stderr", window)
        spare.become(b"P", given)
        for fd in given:
            os.close(fd)
        self._to_child = ToChild(spare.socket.fileno())
        request = {name: self.frame[name] for name in ("argv", "env", "cwd", "limits")}
        own = {"tty": tty is not None, "workspace": self.host.workspace, "import_paths": self.host.import_paths}
        self._to_child.put_request({**request, **own})
        self._watch_start()
        self.host.watcher.watch_read(spare.pid_fd, lambda _event: self.end(None))
        for data in self._early_input:
            self.put_input(data)
        if self._ends_early:
            self.end_input()
        self._early_input.clear()

    def put_input(self, data):
        if self.spare is None:
            self._early_input.append(data)
        elif self._input is None or self.is_ending:
            self.grant_input(len(data))  # nobody reads it
        else:
            self._input.put_data(data)

    def end_input(self):
        if self.spare is None:
            self._ends_early = True
        elif self._terminal is not None and not self.is_ending:
            self._input.put_data(b"\x04", granted=False)
        elif self._input is not None:
            self._input.end()

    def take_credit(self, stream, count):
        for source in self._sources:
            if source.stream.decode() == stream:
                source.credit += count

    def resize(self, rows, columns):
        """Changes the size of its terminal, if it has one."""
        if self._terminal is not None and not self.is_ending:
            _resize(self._terminal, rows, columns)

    def signal(self, name):
        """Sends a signal to its process group; in a terminal, to the group in the foreground."""
        if self.spare is None or self.is_ending or not self._has_run:
            return
        group = 0
        if self._terminal is not None:
            try:
                group = os.tcgetpgrp(self._terminal)
            except OSError:
                group = 0
        self.spare.ask_to_signal(int(signal.Signals[name]), group)

    def on_end_begun(self):
        watcher = self.host.watcher
        watcher.forget(self.spare.pid_fd)
        watcher.forget(self.spare.socket.fileno())
        if self._input is not None:
            self._input.close()

    def on_dead(self, status, confirmed):
        self._status = status
        self._confirmed = confirmed
        for data in self._read_start():
            self._take_start(data)
        for source in self._sources:  # at most what the pipes hold, whether the host takes it or not
            source.is_last, source.credit = True, NO_LIMIT
        self._finish_if_read()

    def _add_source(self, fd, stream, window):
        source = Source(fd, self.id_json, stream, window, self._on_source_end)
        self._sources.append(source)
        self.host.sources.add(source)

    def _on_source_end(self, source):
        if source not in self._sources:
            return
        self._sources.remove(source)
        self.send({"type": "output_end", "stream": source.stream.decode()})
        self._finish_if_read()

    def _finish_if_read(self):
        if self._status is None or self._sources or self.is_over:
            return
        self.close_spare()
        if self._terminal is not None:
            os.close(self._terminal)
        ending = None if self._error is not None else _ending(self._status, self.killed_for)
        self.finish(ending, self._error, confirmed=self._confirmed)

    # ── the start ───────────────────────────────────────────────────────────────────────────────────────────────

    def _watch_start(self):
        fd = self.spare.socket.fileno()
        if self._to_child.flush():
            self.host.watcher.watch_read(fd, lambda _event: self._on_start())
        else:
            self.host.watcher.watch_both(fd, lambda _event: self._watch_start())

    def _on_start(self):
        for data in self._read_start():
            self._take_start(data)

    def _read_start(self):
        """Yields what the process says before it becomes the program, and b"" when it has."""
        while not self._has_run and self._error is None:
            try:
                data = os.read(self.spare.socket.fileno(), 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            yield data

    def _take_start(self, data):
        if data:
            for line in self._lines.push(data):
                self._error = json.loads(line)
            return
        self.host.watcher.forget(self.spare.socket.fileno())
        self._has_run = True
        self.send({"type": "started", "pid": self.spare.pid})


class _InputPipe(Outbox):
    """Bytes on their way to a program. The host may send more when they are written."""

    def __init__(self, activity, fd):
        super().__init__(fd)
        os.set_blocking(fd, False)
        self._activity = activity
        self._watcher = activity.host.watcher
        self._ungranted = 0
        self._ends = False
        self._is_open = True

    def put_data(self, data, granted=True):
        """Queues bytes. `granted` bytes count for the window of the host."""
        if not self._is_open or self._ends:
            self._activity.grant_input(len(data) if granted else 0)
            return
        if granted:
            self._ungranted += len(data)
        self._queue.append(memoryview(data))
        self.size += len(data)
        self._write()

    def end(self):
        """Closes the pipe when everything is written."""
        self._ends = True
        self._write()

    def close(self):
        """Drops what is left."""
        if self._is_open:
            self._is_open = False
            self._watcher.forget(self.fd)
            os.close(self.fd)

    def _write(self):
        if not self._is_open:
            return
        try:
            is_empty = self.flush()
        except OSError:  # the program has closed its end
            self.clear()
            is_empty = True
            self._ends = self._activity.frame["tty"] is None
        self._grant(is_empty)
        if is_empty and self._ends:
            self.close()
        elif is_empty:
            self._watcher.forget(self.fd)
        else:
            self._watcher.watch_write(self.fd, lambda _event: self._write())

    def _grant(self, is_empty):
        taken = self._ungranted - self.size
        if taken > 0 and (is_empty or taken >= INPUT_WINDOW_BYTES // 4):
            self._ungranted -= taken
            self._activity.grant_input(taken)


def _resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("=HHHH", rows, columns, 0, 0))


def _ending(status, killed_for):
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    name = name_of_signal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None
    if killed_for is not None:
        return {"cause": killed_for, "exit_code": code, "signal": name, "by": "host" if killed_for == "cancelled" else "harness"}
    if name is not None:
        return {"cause": "signal", "exit_code": None, "signal": name, "by": "unknown" if name == "SIGKILL" else "script"}
    return {"cause": "exit", "exit_code": code, "signal": None, "by": "script"}
