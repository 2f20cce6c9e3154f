"""Detects a script that waits for a lock that nothing can release any more."""

import os
import signal

from . import integrity

NOTE = (
    "it waits for a lock that nothing can release any more, such as one that it has acquired already, a queue that stays empty, "
    "or a lock of a library whose threads are lost"
)
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine)  # the number of the system call
_WAITS, _PRIVATE, _COMMAND = (0, 9), 128, 127  # FUTEX_WAIT and FUTEX_WAIT_BITSET; the flag; the bits of the command
# Signals of the harness, beside its alarm, and of the C library. A handler for any other signal could release the lock.
_OWN_SIGNALS = (signal.SIGINT, 32, 33)


class LockWait:
    """Samples the main thread of a script's process shortly before the deadline, and at the kill after it."""

    def __init__(self, process, alarm):
        self._process, self._alarm = process, alarm
        self._before = self._now = None

    def sample(self):
        """Reads the state of the process now."""
        self._before, self._now = self._now, read_endless_wait(self._process.pid, self._alarm)

    def was_endless(self):
        """True if the wait was endless at the last sample. Valid only if the harness's alarm has since ended the script: a script
        with a timer of its own has replaced that alarm."""
        return self._now is not None

    def outlasts_alarm(self):
        """True if the process woke up exactly once between the last two samples, for the harness's alarm. A script that replaced
        the alarm with a timer of its own did not wake up; its timer may still fire."""
        return None not in (self._before, self._now) and self._now == self._before + 1


def read_endless_wait(pid, alarm=signal.SIGALRM):
    """Returns how often the process has waited so far, if only a signal could end its current wait and it handles only the signals
    of the harness, such as `alarm`. Otherwise returns None; also on gVisor, whose /proc does not show system calls."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            number, _, operation, _, timeout, *_ = file.read().split()
        is_alone = len(os.listdir(f"/proc/{pid}/task")) == 1
        handled = int(integrity.status_field(pid, "SigCgt"), 16)
        waits = int(integrity.status_field(pid, "voluntary_ctxt_switches"))
        flags = int(operation, 16)
    except (OSError, ValueError, TypeError):
        return None
    own = sum(1 << (each - 1) for each in (alarm, *_OWN_SIGNALS))
    is_wait = number == _FUTEX and flags & _PRIVATE and flags & _COMMAND in _WAITS and int(timeout, 16) == 0
    return waits if is_wait and is_alone and not handled & ~own and not _has_timers(pid) else None


def _has_timers(pid):
    """True if the process has timers of timer_create(2). Those of setitimer(2) cannot be seen."""
    try:
        with open(f"/proc/{pid}/timers") as file:
            return file.read(1) != ""
    except OSError:
        return False
