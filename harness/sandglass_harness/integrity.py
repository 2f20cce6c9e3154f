"""What broker and zygote had at start, and whether a script changed it for good."""

import os
import resource

from . import control_group
from .syscalls import PR_GET_NO_NEW_PRIVS, kernel_log, prctl, set_dumpable

_PF_EXITING = 4  # of linux/sched.h
_RLIMITS = sorted({getattr(resource, n) for n in dir(resource) if n.startswith("RLIMIT_")})


def snapshot(pids):
    """rlimits, CPU affinity, nice value and scheduling policy of each process."""
    return [
        (
            [resource.prlimit(pid, which) for which in _RLIMITS],
            os.sched_getaffinity(pid),
            os.getpriority(os.PRIO_PROCESS, pid),
            os.sched_getscheduler(pid),
        )
        for pid in pids
    ]


def status_field(pid, name):
    """A line of /proc/PID/status, or None."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key == name:
                    return value.strip()
    except OSError:
        pass
    return None


def self_check(zygote_pid, writable_roots, leaked_fds):
    """What is in force around the harness, found by trying; goes out with `ready`."""
    gvisor = _is_gvisor()
    return {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "leaked_fds": leaked_fds,
        "no_new_privs": _has_no_new_privs(zygote_pid),
        "seccomp": status_field(zygote_pid, "Seccomp") == "2",
        "capabilities": status_field("self", "CapEff"),
        "root_read_only": not _can_create("/.sandglass-probe") and not _can_create("/usr/.sandglass-probe"),
        "dev_read_only": not _can_create("/dev/.sandglass-probe"),
        "proc_sys_read_only": not os.access("/proc/sys/kernel/msgmax", os.W_OK),
        "interfaces": ",".join(_interfaces()),
        "scratch_sized": all(_size(root) < 1 << 50 for root in writable_roots),
        "descriptors_hidden": not _can_list(f"/proc/{zygote_pid}/fd"),
        "kernel": os.uname().release,
        "gvisor": gvisor,
        **(control_group.limits_in_gvisor(zygote_pid) if gvisor else control_group.limits()),
    }


def _has_no_new_privs(zygote_pid):
    """gVisor's /proc does not tell. What this process has its zygote has, too: it passes on and cannot be undone."""
    told = status_field(zygote_pid, "NoNewPrivs")
    return prctl(PR_GET_NO_NEW_PRIVS) == 1 if told is None else told == "1"


def open_proc(name):
    """A file below /proc to be read again and again with pread: finding it costs more than reading it. None without it."""
    try:
        return os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def last_pid(loadavg):
    """The pid that was given out last in this pid namespace, or None where the kernel does not tell. `loadavg` is
    open_proc("loadavg")."""
    try:
        return int(os.pread(loadavg, 128, 0).rsplit(None, 1)[1])
    except (OSError, ValueError, IndexError, TypeError):
        return None


def nobody_but(pids):
    """Whether these are all the processes that there are, zombies included."""
    known = {str(pid) for pid in pids}
    return all(name in known for name in os.listdir("/proc") if name.isdigit())


def tells_exit_status():
    """Whether the kernel tells how a process ended without its being reaped; found out with one of the broker's own.

    It tells 0 of one that is not dumpable, as some scripts may make themselves: see who asks.
    """
    pid = os.fork()
    if pid == 0:
        set_dumpable(True)
        os._exit(7)
    stat = open_proc(f"{pid}/stat")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    told = exit_status(stat)
    os.waitpid(pid, 0)
    if stat is not None:
        os.close(stat)
    return told == 7 << 8


def exit_status(stat):
    """How a process ended that nobody has reaped yet, as wait(2) gives it; None while it can still run. `stat` is
    open_proc("PID/stat"), opened while it lived or since.

    A process that is on its way out and has let go of its address space counts: the kernel gives its memory back, which
    takes longer than all else, but no instruction of its own is run any more.
    """
    try:
        fields = os.pread(stat, 4096, 0).rpartition(b")")[2].split()
        going = fields[0] == b"Z" or (int(fields[6]) & _PF_EXITING and fields[20] == b"0")
        threads = int(fields[17])  # the first of them may end before the others
        return int(fields[49]) if going and threads <= 1 else None
    except (OSError, ValueError, IndexError, TypeError):
        return None


def has_ended(pid):
    """Whether a process that nobody has reaped yet is a zombie, or is gone all the same."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, 4096).rpartition(b")")[2].split()[0] == b"Z"
        finally:
            os.close(fd)
    except OSError:
        return True


def _can_create(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(path)
    except OSError:
        return False
    return True


def _can_list(path):
    """Of a process that is not dumpable either and has the same uid, like the broker as scripts see it."""
    try:
        os.listdir(path)
    except OSError:
        return False
    return True


def _interfaces():
    try:
        with open("/proc/net/dev") as file:
            return sorted(line.partition(":")[0].strip() for line in list(file)[2:])
    except OSError:
        return ["unknown"]


def _is_gvisor():
    """gVisor's kernel lets everybody read its log, which begins with `<6>[    0.000000] Starting gVisor...`."""
    return kernel_log().partition(b"] ")[2].startswith(b"Starting gVisor")


def _size(root):
    found = os.statvfs(root)
    return found.f_blocks * found.f_frsize
