"""The part of Landlock that confines signals to a tree of processes (Linux 6.12, ABI 6)."""

import ctypes
import os

from ..libc import syscall

CREATE_RULESET, RESTRICT_SELF = 444, 446  # the same numbers on every architecture
SCOPE_SIGNAL = 2


class _Ruleset(ctypes.Structure):
    _fields_ = (("access_fs", ctypes.c_uint64), ("access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def scope_signals():
    """Puts this process and its future descendants into a domain of its own. They can send signals to no process outside, and
    cannot open the memory or the environment of one. Processes of outer domains can still signal them. Returns False if the
    kernel does not support that."""
    rules = _Ruleset(0, 0, SCOPE_SIGNAL)
    try:
        fd = syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    except OSError:  # no Landlock, or an older one
        return False
    try:
        syscall(RESTRICT_SELF, fd, 0)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def can_scope_signals():
    """True if a process can be put into a domain from which it cannot signal this one. Probes with a child process."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if scope_signals() and refuses_signals_to(os.getppid()) else 1)
    return os.waitpid(pid, 0)[1] == 0


def refuses_signals_to(pid):
    """True if this process may not send a signal to another one of its uid."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False
