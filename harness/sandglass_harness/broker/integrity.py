"""The state of broker and zygote at start, and the checks that no script changed it."""

import importlib.machinery
import os
import resource

from ..libc import PR_GET_NO_NEW_PRIVS, kernel_log, landlock_abi, prctl, set_dumpable
from . import control_group

MAX_GROWTH_BYTES = 16 << 20
_STATUS_BYTES = 16 << 10  # more than /proc/PID/status has; the kernel gives all of it to one read
_PAGE_BYTES = resource.getpagesize()
_PF_EXITING = 4  # of linux/sched.h
# Programs that scripts often need and that not every system has.
_PROGRAMS = ("bash", "node", "perl", "git", "curl", "make", "gcc", "jq")
_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_RLIMITS = sorted({getattr(resource, n) for n in dir(resource) if n.startswith("RLIMIT_")})


class ProcessLimits:
    """The rlimits, CPU affinity, nice value and scheduling policy of processes."""

    def __init__(self, pids):
        # One read shows all rlimits of a process. gVisor does not have the file.
        self._processes = [(pid, open_proc(f"{pid}/limits")) for pid in pids]

    def read(self):
        """Returns the present values of each process."""
        return [
            (
                [resource.prlimit(pid, which) for which in _RLIMITS] if limits is None else os.pread(limits, 4096, 0),
                os.sched_getaffinity(pid),
                os.getpriority(os.PRIO_PROCESS, pid),
                os.sched_getscheduler(pid),
            )
            for pid, limits in self._processes
        ]


class MemoryGrowth:
    """The own memory of a process, compared with that at start. It does not grow from run to run, unless a run makes it."""

    def __init__(self, pid):
        self._file = open_proc(f"{pid}/statm")
        self._normal = self._read()

    def is_large(self):
        """True if it holds MAX_GROWTH_BYTES more than at start."""
        return self._read() - self._normal > MAX_GROWTH_BYTES

    def _read(self):
        if self._file is None:
            return 0
        _, resident, shared, *_ = os.pread(self._file, 256, 0).split()
        return (int(resident) - int(shared)) * _PAGE_BYTES


def status_field(pid, name):
    """Returns the value of a line of /proc/PID/status, or None."""
    return status_fields(pid, (name,))[0]


def status_fields(pid, names):
    """Returns the values of lines of /proc/PID/status, None for a missing line."""
    try:
        fd = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = b"\n" + os.read(fd, _STATUS_BYTES)  # searched, not split: a broker reads it after every cell
        finally:
            os.close(fd)
    except OSError:
        return [None for _ in names]
    return [_line_of(text, name) for name in names]


def _line_of(text, name):
    head = b"\n%s:" % name.encode()
    at = text.find(head)
    return None if at < 0 else text[at + len(head) : text.find(b"\n", at + 1)].strip().decode(errors="replace")


def self_check(zygote_pid, writable_roots, leaked_fds):
    """Probes which protections are in force around the harness. The frame `ready` carries the results."""
    gvisor = _is_gvisor()
    return {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "user_namespace": _has_user_namespace(),
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
        "abi": importlib.machinery.EXTENSION_SUFFIXES[0].removeprefix(".").removesuffix(".so"),
        "libc": _libc(),
        "memory_bytes": resident_memory(zygote_pid),
        "landlock_abi": landlock_abi(),
        "programs": ",".join(_programs()),
        "gvisor": gvisor,
        **(control_group.limits_in_gvisor(zygote_pid) if gvisor else control_group.limits()),
    }


def _has_user_namespace():
    """True if ids are not those of the kernel: this process, or what it runs in, has a user namespace. None if that cannot be seen."""
    try:
        with open("/proc/self/uid_map") as file:
            return file.read().split() != ["0", "0", str(2**32 - 1)]
    except OSError:
        return None


def _programs():
    """Returns the programs of _PROGRAMS that are installed."""
    return [name for name in _PROGRAMS if any(os.access(f"{path}/{name}", os.X_OK) for path in _PATH)]


def resident_memory(pid):
    """Returns the resident memory of a process in bytes, shared libraries included; None if the kernel does not show it."""
    try:
        fd = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 256).split()[1]) * _PAGE_BYTES
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return None


def _libc():
    """Returns the name and version of the C library, which select wheels. musl does not report its version."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "musl"
    except (OSError, ValueError):
        return "musl"


def _has_no_new_privs(zygote_pid):
    """True if the zygote has no_new_privs. gVisor's /proc does not show it; this process has the flag as well, because it is
    inherited and cannot be undone."""
    shown = status_field(zygote_pid, "NoNewPrivs")
    return prctl(PR_GET_NO_NEW_PRIVS) == 1 if shown is None else shown == "1"


def open_proc(name):
    """Opens a file below /proc for repeated pread, because a lookup costs more than a read. Returns None if it is missing."""
    try:
        return os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def last_pid(loadavg):
    """Returns the last pid that the kernel allocated in this pid namespace, or None if it does not show that. `loadavg` is
    open_proc("loadavg")."""
    try:
        return int(os.pread(loadavg, 128, 0).rsplit(None, 1)[1])
    except (OSError, ValueError, IndexError, TypeError):
        return None


def has_only_processes(pids):
    """True if no other process exists, zombies included."""
    allowed = {str(pid) for pid in pids}
    return all(name in allowed for name in os.listdir("/proc") if name.isdigit())


def shows_exit_status():
    """True if the kernel shows the exit status of an unreaped process. Probes with a child of the broker.

    The kernel shows 0 for a process that is not dumpable. A script can make itself so; callers must handle that.
    """
    pid = os.fork()
    if pid == 0:
        set_dumpable(True)
        os._exit(7)
    stat = open_proc(f"{pid}/stat")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    shown = exit_status(stat)
    os.waitpid(pid, 0)
    if stat is not None:
        os.close(stat)
    return shown == 7 << 8


def exit_status(stat):
    """Returns the wait(2) status of an unreaped process, or None while it can still run. `stat` is open_proc("PID/stat").

    A process that is exiting and has released its address space counts as ended. The kernel still frees its memory, which
    takes the most time, but the process runs no further instruction.
    """
    try:
        fields = os.pread(stat, 4096, 0).rpartition(b")")[2].split()
        ended = fields[0] == b"Z" or (int(fields[6]) & _PF_EXITING and fields[20] == b"0")
        threads = int(fields[17])  # the main thread may end before the others
        return int(fields[49]) if ended and threads <= 1 else None
    except (OSError, ValueError, IndexError, TypeError):
        return None


def has_ended(pid):
    """True if an unreaped process is a zombie without further threads, or is gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(fd, 4096).rpartition(b")")[2].split()
            return fields[0] == b"Z" and int(fields[17]) <= 1
        finally:
            os.close(fd)
    except (OSError, IndexError, ValueError):
        return True


def _can_create(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(path)
    except OSError:
        return False
    return True


def _can_list(path):
    """True if a directory of /proc can be listed. The probed process is not dumpable and has the same uid, as the broker is for
    scripts."""
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
    """True on gVisor, whose kernel log is readable for everybody and begins with `<6>[    0.000000] Starting gVisor...`."""
    return kernel_log().partition(b"] ")[2].startswith(b"Starting gVisor")


def _size(root):
    found = os.statvfs(root)
    return found.f_blocks * found.f_frsize
