"""Reads the sandbox's control group if its files are visible inside (in containers)."""

import os
import resource

ROOT = "/sys/fs/cgroup"


class MemoryKills:
    """Counts processes that the kernel killed for memory. The file stays open, because every run reads it twice."""

    def __init__(self, root=ROOT):
        self._fd = _first([f"{root}/memory.events", f"{root}/memory/memory.oom_control"])

    def count(self):
        """Returns the count, or None if the kernel does not provide it."""
        if self._fd is None:
            return None
        try:
            for line in os.pread(self._fd, 4096, 0).splitlines():
                name, _, value = line.partition(b" ")
                if name == b"oom_kill":
                    return int(value)
        except (OSError, ValueError):
            pass
        return None


def limits(root=ROOT):
    """Returns the limits of memory, processes and CPUs. Each is None if it is not set or not visible."""
    quota, period = _read_words(f"{root}/cpu.max", 2) or (
        *(_read_words(f"{root}/cpu/cpu.cfs_quota_us", 1) or ("-1",)),
        *(_read_words(f"{root}/cpu/cpu.cfs_period_us", 1) or ("0",)),
    )
    return {
        "memory_limit": _number(_read_words(f"{root}/memory.max", 1) or _read_words(f"{root}/memory/memory.limit_in_bytes", 1)),
        "pids_limit": _number(_read_words(f"{root}/pids.max", 1) or _read_words(f"{root}/pids/pids.max", 1)),
        "cpu_limit": int(quota) / int(period) if _is_positive(quota) and _is_positive(period) else None,
    }


def limits_in_gvisor(zygote_pid, root=ROOT):
    """Returns the same limits in gVisor. It reports the group's memory as that of the machine, and enforces RLIMIT_NPROC itself.
    Newer versions show the group's CPU quota in a file, older ones do not."""
    return {
        "memory_limit": _memory_of_machine(),
        "pids_limit": resource.prlimit(zygote_pid, resource.RLIMIT_NPROC)[1] if counts_processes() else None,
        "cpu_limit": limits(root)["cpu_limit"],
    }


def counts_processes():
    """True if the kernel enforces RLIMIT_NPROC for this user. Probes with a child process."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            os._exit(0 if os.fork() else 1)
        except BlockingIOError:
            os._exit(3)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


def _memory_of_machine(path="/proc/meminfo"):
    words = _read_line_words(path, "MemTotal:")
    return int(words[1]) * 1024 if words and words[2:] == ["kB"] else None


def _read_line_words(path, name):
    try:
        with open(path) as file:
            return next((words for words in map(str.split, file) if words[:1] == [name]), None)
    except OSError:
        return None


def _first(paths):
    for path in paths:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    return None


def _read_words(path, count):
    try:
        with open(path) as file:
            words = file.read(256).split()
    except OSError:
        return None
    return tuple(words) if len(words) == count else None


def _number(words):
    # Version 1 of control groups writes "no limit" as a number near 2**63.
    return int(words[0]) if words and _is_positive(words[0]) and int(words[0]) < 1 << 53 else None


def _is_positive(text):
    return text.isdigit() and int(text) > 0
