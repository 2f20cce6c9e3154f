"""A program in a workspace: its start, its input, its output as bytes, its terminal and its end."""

import fcntl
import json
import os
import signal
import struct
import termios
import time

from .activity import ProcessActivity
from .channel import LineBuffer
from .ending import ending_of
from .input_outbox import InputPipe
from .processes import EndPoll
from .sources import Source
from .to_child import ToChild

REST_BYTES = 1 << 20  # the default of fs.pipe-max-size; without a higher setting, no pipe of a program holds more


class ProgramActivity(ProcessActivity):
    """A program: its input, its output as bytes, its end."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
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
        self._end_poll = None

    @property
    def due(self):
        if self.is_ending:
            return self._end_due
        due = (self._deadline, None if self._end_poll is None else self._end_poll.due)
        return min((moment for moment in due if moment is not None), default=None)

    def advance(self, now):
        if self.is_ending:
            self.check_end(now)
        elif self._deadline is not None and now >= self._deadline:
            if self.spare is None:
                self.refuse("busy", f"no process could be created within the timeout of {self.frame['timeout_sec']:g} s")
            else:
                self.end("timeout")
        elif self._end_poll is not None and self._end_poll.finds_end(now):
            self.end(None)

    def begin(self, spare):
        super().begin(spare)
        self._memory_kills_before = self.workspace.sandbox.memory_kills.count()
        window, tty = self.frame["window"], self.frame["tty"]
        given = []
        if tty is not None:
            try:
                self._terminal, slave = os.openpty()
            except OSError as error:  # scripts can use up all terminals of the machine
                self._error = {"code": "busy", "message": f"no terminal could be created: {error.strerror or error}"}
                self.end(None)
                return
            _resize(self._terminal, tty["rows"], tty["columns"])
            given.append(slave)
            self._input = InputPipe(self, os.dup(self._terminal))
            os.set_blocking(self._terminal, False)
            self._add_source(self._terminal, b"stdout", window)
        else:
            if self.frame["stdin"] == "pipe":
                read, write = os.pipe()
                os.set_blocking(write, False)
                given.append(read)
                self._input = InputPipe(self, write)
            self._add_source(spare.out_fd, b"stdout", window)
            self._add_source(spare.err_fd, b"stderr", window)
        spare.become(b"P", given)
        for fd in given:
            os.close(fd)
        self._to_child = ToChild(spare.socket.fileno())
        request = {name: self.frame[name] for name in ("argv", "env", "cwd", "limits")}
        own = {"tty": tty is not None, "workspace": self.workspace.directory, "import_paths": self.workspace.import_paths}
        self._to_child.put_request({**request, **own})
        self._watch_start()
        self._end_poll = EndPoll(spare, time.monotonic())
        if spare.pid_fd is not None:
            self.workspace.watcher.watch_read(spare.pid_fd, lambda _event: self.end(None))
        for data in self._early_input:
            self.put_input(data)
        if self._ends_early:
            self.end_input()
        self._early_input.clear()

    def put_input(self, data):
        if self.spare is None:
            self._early_input.append(data)
        elif self._input is None or self.is_ending:
            self.grant_input(len(data))  # nobody reads the input
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
        """Sends a signal to its process group, or to the foreground group of its terminal."""
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
        watcher = self.workspace.watcher
        watcher.forget(self.spare.pid_fd)
        watcher.forget(self.spare.socket.fileno())
        if self._input is not None:
            self._input.close()

    def on_dead(self, status, confirmed):
        self._status = status
        self._confirmed = confirmed
        for data in self._read_start():
            self._take_start(data)
        for source in self._sources:  # drain the pipes, whatever credit the host has left
            source.is_last, source.credit = True, REST_BYTES
        self._finish_if_read()

    def _add_source(self, fd, stream, window):
        source = Source(fd, self.id_json, stream, window, self._on_source_end)
        self._sources.append(source)
        self.workspace.sources.add(source)

    def _on_source_end(self, source):
        if source not in self._sources:
            return
        self._sources.remove(source)
        if self._end_poll is not None and not self._sources:
            self._end_poll.poll_soon()  # no process has its output open any more
        self.send({"type": "output_end", "stream": source.stream.decode()})
        self._finish_if_read()

    def _finish_if_read(self):
        if self._status is None or self._sources or self.is_over:
            return
        self.close_spare()
        if self._terminal is not None:
            os.close(self._terminal)
        ending = None if self._error is not None else ending_of(self._status, self.killed_for)
        kills = self.workspace.sandbox.memory_kills.count()
        result = None if kills is None else {"memory_kills": kills - (self._memory_kills_before or 0)}
        self.finish(ending, self._error, result, confirmed=self._confirmed)

    # ── the start ───────────────────────────────────────────────────────────────────────────────────────────────

    def _watch_start(self):
        fd = self.spare.socket.fileno()
        if self._to_child.flush():
            self.workspace.watcher.watch_read(fd, lambda _event: self._on_start())
        else:
            self.workspace.watcher.watch_both(fd, lambda _event: self._watch_start())

    def _on_start(self):
        for data in self._read_start():
            self._take_start(data)

    def _read_start(self):
        """Yields the messages of the process before it becomes the program, and b"" once it has."""
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
        self.workspace.watcher.forget(self.spare.socket.fileno())
        self._has_run = True
        self.send({"type": "started", "pid": self.spare.pid})


def _resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("=HHHH", rows, columns, 0, 0))
