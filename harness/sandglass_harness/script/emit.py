"""The functions that a script calls to emit values, and the emitter that writes their frames."""

import fcntl
import os
import signal
import threading
import time

from ..caps import MAX_LABEL, MAX_LEVEL
from ..text import cut_head
from ..wire import encode
from .convert import to_json_with_nulls
from .door import called_by_script, defer


class ScriptTimeout(BaseException):
    """The script reached its deadline. Not a subclass of Exception, so that `except Exception` does not catch it."""

    after_line = False  # True if `send` raised it after its line was written


ScriptTimeout.__module__ = "__main__"  # a script that prints it sees no name of the harness


_UNREAD = 0x5411  # SIOCOUTQ: bytes of a socket that the peer has not read
_WAIT_SEC = 0.1
_LOCK_NAME = "emit"
_LOCK_PATH = f"/memfd:{_LOCK_NAME} (deleted)"  # a script may have closed it, and given its number to another file


class Emitter:
    """Writes frames to a descriptor, one per line. Lines of several threads and forked children never mix."""

    def __init__(self, fd):
        self._fd = fd
        self._lock = threading.Lock()
        self._between_processes = None
        self.forks_write = True  # False while a fork is no writer: a copy of a session, which gets another socket
        self._held = []  # lines to write together with the next one
        self._main_writes = False
        self._can_wait = True
        self._timeout_pending = self._interrupt_pending = False
        self._late = []  # lines of signal handlers that ran while a line was being written

    def send(self, frame):
        """Writes a frame whose values are plain JSON."""
        self.send_line(self.line_of(frame))

    line_of = staticmethod(encode)

    def hold_line(self, line):
        """Writes a line together with the next one, because each write wakes the broker, which takes CPU time from the script. The
        next line must follow soon."""
        self._pass_on(line, self._hold)

    def release(self):
        """Writes the lines that are held."""
        if self._held:
            self._pass_on(b"", self._write)

    def send_line(self, line):
        """Writes a line from `line_of`."""
        self._pass_on(line, self._write)

    def _pass_on(self, line, write):
        if threading.current_thread() is not threading.main_thread():
            return write(line)
        if self._main_writes:
            return self._late.append(line)
        self._main_writes = True
        try:
            write(line)
            while self._late:
                self._write(self._late.pop(0))
        finally:
            self._main_writes = False
        if self._timeout_pending:
            timeout = ScriptTimeout()
            timeout.after_line = True
            raise timeout
        if self._interrupt_pending:
            self._interrupt_pending = False
            raise KeyboardInterrupt
        return None

    def wait_until_read(self):
        """Waits until the broker has read every line, for at most `_WAIT_SEC`. After the first timeout, no call waits again."""
        give_up_at = time.monotonic() + _WAIT_SEC
        try:
            while self._can_wait and any(fcntl.ioctl(self._fd, _UNREAD, bytes(4))):
                time.sleep(0.0001)
                self._can_wait = time.monotonic() < give_up_at
        except (OSError, ValueError):  # the descriptor does not support SIOCOUTQ
            self._can_wait = False

    def on_alarm(self):
        """Raises ScriptTimeout, but never in the middle of a line."""
        if self._main_writes:
            self._timeout_pending = True
        else:
            raise ScriptTimeout

    def on_interrupt(self):
        """Raises KeyboardInterrupt, but never in the middle of a line."""
        if self._main_writes:
            self._interrupt_pending = True
        else:
            raise KeyboardInterrupt

    def forget_signals(self):
        """Forgets signals of the last cell that were deferred."""
        self._timeout_pending = self._interrupt_pending = False

    def _hold(self, data):
        with self._lock:
            self._held.append(data)

    def _write(self, data):
        with self._lock:
            if self._held:
                data = b"".join((*self._held, data))
                self._held.clear()
            shared = self._between_processes
            if shared is not None:
                fcntl.lockf(shared, fcntl.LOCK_EX)
            try:
                self._put(data)
            finally:
                if shared is not None:
                    fcntl.lockf(shared, fcntl.LOCK_UN)

    def _put(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    @property
    def lock_fd(self):
        """The file by which several processes lock the socket; None before the first fork of a writer."""
        return self._between_processes

    def before_fork(self):
        """Waits for threads that write. From then on, writers also acquire a lock that forked children share."""
        if not self._is_in_handler():
            self._lock.acquire()
        if self._between_processes is None and self.forks_write:
            self._between_processes = os.memfd_create(_LOCK_NAME, os.MFD_CLOEXEC)

    def after_fork_in_parent(self):
        """Lets other threads write again."""
        if not self._is_in_handler():
            self._lock.release()

    def after_fork_in_child(self):
        """Forgets lines that the parent has not finished."""
        self._lock = threading.Lock()
        self._main_writes = False
        self._late.clear()
        self._held.clear()

    def separate(self):
        """Gives up the lock that this process shares with its origin: it gets a descriptor of its own before it writes."""
        shared, self._between_processes = self._between_processes, None
        try:
            if shared is not None and os.readlink(f"/proc/self/fd/{shared}") == _LOCK_PATH:
                os.close(shared)
        except OSError:  # a script has closed it
            pass

    def _is_in_handler(self):
        """True in a signal handler that has interrupted the writing of a line, so that its thread holds the lock."""
        return self._main_writes and threading.current_thread() is threading.main_thread()


class SilentEmitter(Emitter):
    """An emitter that drops its frames. Without a descriptor it makes no system call."""

    def _put(self, data):
        if self._fd is not None:
            os.write(self._fd, data[:0])


class _NoRun:
    """The emitter while no script runs, for tool files that emit at import."""

    def send(self, _frame):
        raise RuntimeError("nothing can be emitted while no script runs; emit in a function of the tool, not at import")

    def on_alarm(self):
        """Does nothing, because no script runs."""

    def before_fork(self):
        """Does nothing, at forks of the zygote."""

    def after_fork_in_parent(self):
        """Does nothing, at forks of the zygote."""

    def after_fork_in_child(self):
        """Does nothing, at forks of the zygote."""


current = _NoRun()
if hasattr(os, "memfd_create"):  # not in Pyodide, which has no processes
    os.register_at_fork(
        before=lambda: current.before_fork(),
        after_in_parent=lambda: current.after_fork_in_parent(),
        after_in_child=lambda: current.after_fork_in_child(),
    )


def use(emitter):
    """Sets the emitter of the functions below."""
    global current
    current = emitter


@called_by_script
def emit_result(data=None):
    """Hands the final result to the agent. The first call counts."""
    current.send({"type": "final_result", **_data_fields(data)})


@called_by_script
def emit_intermediate(label, data=None):
    """Hands a partial result to the agent while the script continues."""
    fields = _data_fields(data)
    current.send({"type": "intermediate", "label": cut_head(str(label), MAX_LABEL), **fields})


def _data_fields(data):
    plain, nulls = to_json_with_nulls(data, _show_picture)
    return {"data": plain} if nulls is None else {"data": plain, "nan_as_null": nulls}


def _show_picture(value):
    from . import display  # here, because display imports this module

    return display.show_picture(value)


@called_by_script
def emit_log(message, level="info"):
    """Writes a diagnostic message to the host's log."""
    current.send({"type": "log", "message": str(message), "level": cut_head(str(level), MAX_LEVEL)})


HELPERS = {"emit_result": emit_result, "emit_intermediate": emit_intermediate, "emit_log": emit_log}


_MAX_TIMER_SEC = 1e9  # 30 years; setitimer(2) takes up to 292
_is_armed = _has_timer = False
_ran_out = False


def install_clock(number=signal.SIGALRM):
    """Makes a signal raise ScriptTimeout in the main thread during a run."""
    signal.signal(number, _on_alarm)


def _on_alarm(number, frame):
    global _ran_out
    # An alarm can arrive after the script is done, when the clock is disarmed.
    if _is_armed and not defer(frame, lambda: _on_alarm(number, None)):
        _ran_out = True
        try:
            current.on_alarm()
        except ScriptTimeout as timeout:
            timeout.__traceback__ = None  # hides the frames of the harness, as door.py does
            raise


_takes_interrupt = _interrupted = _missed_interrupt = False


def allow_interrupt(allowed):
    """Allows or forbids interrupts of a cell by the host from now on."""
    global _takes_interrupt, _interrupted
    _takes_interrupt = allowed
    if allowed:
        _interrupted = False
        current.forget_signals()


def on_interrupt(number, frame):
    """Handles the SIGINT of the host. Between two cells it interrupts nothing."""
    global _interrupted, _missed_interrupt
    if not _takes_interrupt:
        _missed_interrupt = True
    elif not defer(frame, lambda: on_interrupt(number, None)):
        _interrupted = True
        current.on_interrupt()


def take_missed_interrupt():
    """Returns True once if a SIGINT arrived while none was allowed: early for the cell that begins now, or late for the last
    one."""
    global _missed_interrupt
    missed, _missed_interrupt = _missed_interrupt, False
    return missed


def was_interrupted():
    """True if the host interrupted the cell."""
    return _interrupted


def clock_ran_out():
    """True if the deadline has passed, even if the script caught the ScriptTimeout."""
    return _ran_out


def arm(seconds=None):
    """Starts the clock. With `seconds`, this process sets a timer. Otherwise the broker or the engine sends the signal."""
    global _ran_out, _is_armed, _has_timer
    _ran_out, _is_armed, _has_timer = False, True, seconds is not None
    if _has_timer:
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 0.000_001), _MAX_TIMER_SEC))


def disarm():
    """Stops the clock."""
    global _is_armed
    _is_armed = False
    if _has_timer:
        signal.setitimer(signal.ITIMER_REAL, 0)
