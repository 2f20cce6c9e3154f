"""Finds and ends the descendants of a process, even those that have called setsid()."""

import contextlib
import ctypes
import errno
import os
import resource
import signal

from ..libc import prctl

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37


@contextlib.contextmanager
def adopt_orphans():
    """Makes this process the parent of its orphaned descendants, in place of PID 1. On exit, kills all that are left."""
    adopts = adopt(True)
    try:
        yield
    finally:
        end()
        if adopts:
            adopt(False)


def find_living():
    """Returns the pids of all living descendants, including those whose parent has ended."""
    known = _others()
    found, parents = set(), _roots()
    while parents:
        below = {pid for pid, (_, parent) in known.items() if parent in parents}
        parents = below - found
        found |= below
    return {pid for pid in found if known[pid][0] != b"Z"}


def mark_of(pid):
    """Returns the RLIMIT_RTTIME that marks the processes of a session; None if the process is gone."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_RTTIME)[1]
    except (OSError, ValueError):
        return None


COPY_PREFIX = b"copy:"  # of the names of a session's copies, and of the process that forks them


def name_of(pid):
    """Returns the kernel's name of a process, which the process can choose: at most 15 bytes. None if it is gone."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read(64).strip().replace(b"\0", b"?") or b"?"
    except OSError:
        return None


def _children():
    parents = _roots()
    return {pid for pid, (state, parent) in _others().items() if parent in parents and state != b"Z"}


def _roots():
    # Without adoption, all orphans of the sandbox are children of PID 1. While modules load, no other process leaves orphans.
    return {os.getpid()} if can_adopt() else {os.getpid(), 1}


def _others():
    """Returns state and parent of each process except this one and its parent, which may be the zygote, a child of PID 1."""
    spared = {os.getpid(), os.getppid()}
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid: _state_and_parent(pid) for pid in pids if pid not in spared}


def end():
    """Kills the children, and the orphans that they leave, until none is left."""
    while True:
        found = _children()
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # its pid is not reused before it is reaped
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            if not found:
                return


def adopt(wanted):
    """Switches the adoption of orphans on or off. Returns False on kernels without it, such as gVisor's, where PID 1 adopts
    them."""
    try:
        prctl(PR_SET_CHILD_SUBREAPER, 1 if wanted else 0)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def can_adopt():
    """True if the kernel lets a process adopt orphans."""
    try:
        prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(ctypes.c_int()))
    except OSError:
        return False
    return True


def adopts_orphans():
    """True if this process adopts its orphaned descendants."""
    found = ctypes.c_int()
    try:
        prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(found))
    except OSError:
        return False
    return found.value == 1


def _state_and_parent(pid):
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(fd, 4096).rpartition(b")")[2].split()
        finally:
            os.close(fd)
        # The main thread may end before the others, and the process then looks like a zombie.
        return b"S" if fields[0] == b"Z" and int(fields[17]) > 1 else fields[0], int(fields[1])
    except (OSError, IndexError, ValueError):
        return None, None  # the process is gone
