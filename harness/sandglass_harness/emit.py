"""The functions a script calls to tell something, and the way their frames take out of its process."""

import fcntl
import json
import os
import signal
import threading

from .convert import to_json
from .explain import cut_head

MAX_LABEL = 1024
MAX_LEVEL = 64
# Made once: json.dumps makes one a call.
_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encoded_as_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class ScriptTimeout(BaseException):
    """The wall clock of the script ran out. Not an Exception, so that `except Exception` does not swallow it."""

    after_line = False  # raised by `send` once its line was out


class Emitter:
    """Writes one frame a line to a descriptor; lines never mix, whichever thread or forked child writes them."""

    def __init__(self, fd):
        self._fd = fd
        self._lock = threading.Lock()
        self._between_processes = None
        self._main_writes = False
        self._timeout_pending = False
        self._late = []  # lines of signal handlers that came in the middle of a line

    def send(self, frame):
        """Writes a frame whose values are plain JSON already."""
        self.send_line(self.line_of(frame))

    @staticmethod
    def line_of(frame):
        """A frame as it is written."""
        try:
            return _encoded(frame).encode() + b"\n"
        except UnicodeEncodeError:  # lone surrogates travel escaped
            return _encoded_as_ascii(frame).encode() + b"\n"

    def send_line(self, line):
        """Writes what `line_of` gave."""
        if threading.current_thread() is not threading.main_thread():
            return self._write(line)
        if self._main_writes:
            return self._late.append(line)
        self._main_writes = True
        try:
            self._write(line)
            while self._late:
                self._write(self._late.pop(0))
        finally:
            self._main_writes = False
        if self._timeout_pending:
            timeout = ScriptTimeout()
            timeout.after_line = True
            raise timeout
        return None

    def on_alarm(self):
        """The clock ran out: raises, but never in the middle of a line."""
        if self._main_writes:
            self._timeout_pending = True
        else:
            raise ScriptTimeout

    def _write(self, data):
        with self._lock:
            shared = self._between_processes
            if shared is not None:
                fcntl.lockf(shared, fcntl.LOCK_EX)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
            finally:
                if shared is not None:
                    fcntl.lockf(shared, fcntl.LOCK_UN)

    def before_fork(self):
        """A child must not write into the middle of a thread's line; from now on a lock that children see too."""
        if not self._interrupted():
            self._lock.acquire()
        if self._between_processes is None:
            self._between_processes = os.memfd_create("emit", os.MFD_CLOEXEC)

    def after_fork_in_parent(self):
        """Threads go on."""
        if not self._interrupted():
            self._lock.release()

    def after_fork_in_child(self):
        """Whatever was half written is the parent's."""
        self._lock = threading.Lock()
        self._main_writes = False
        self._late.clear()

    def _interrupted(self):
        """Whether this is a signal handler in the middle of a line, whose thread holds the lock already."""
        return self._main_writes and threading.current_thread() is threading.main_thread()


class _NoRun:
    """Stands in while no script runs, for tool files that emit at import."""

    def send(self, _frame):
        raise RuntimeError("nothing can be emitted while no script runs")

    def on_alarm(self):
        """No clock runs."""

    def before_fork(self):
        """The zygote's own forks."""

    def after_fork_in_parent(self):
        """The zygote's own forks."""

    def after_fork_in_child(self):
        """The zygote's own forks."""


current = _NoRun()
if hasattr(os, "memfd_create"):  # not where there are no processes (Pyodide has os.fork, which fails)
    os.register_at_fork(
        before=lambda: current.before_fork(),
        after_in_parent=lambda: current.after_fork_in_parent(),
        after_in_child=lambda: current.after_fork_in_child(),
    )


def use(emitter):
    """Makes `emitter` the one that the functions below write to."""
    global current
    current = emitter


def emit_result(data=None):
    """Hands the final result to the agent. The first call counts."""
    current.send({"type": "final_result", "data": to_json(data)})


def emit_intermediate(label, data=None):
    """Hands a partial result to the agent while the script goes on."""
    current.send({"type": "intermediate", "label": cut_head(str(label), MAX_LABEL), "data": to_json(data)})


def emit_log(message, level="info"):
    """Writes a diagnostic message to the host's log."""
    current.send({"type": "log", "message": str(message), "level": cut_head(str(level), MAX_LEVEL)})


HELPERS = {"emit_result": emit_result, "emit_intermediate": emit_intermediate, "emit_log": emit_log}


_ran_out = False


def install_clock():
    """Makes SIGALRM raise ScriptTimeout in the main thread of whatever run is current."""
    signal.signal(signal.SIGALRM, _on_alarm)


def _on_alarm(_number, _frame):
    global _ran_out
    _ran_out = True
    current.on_alarm()


def clock_ran_out():
    """Whether the clock has run out, also where the ScriptTimeout was swallowed."""
    return _ran_out


def arm(seconds):
    """Starts the clock."""
    global _ran_out
    _ran_out = False
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.000_001))


def disarm():
    """Stops the clock."""
    signal.setitimer(signal.ITIMER_REAL, 0)
