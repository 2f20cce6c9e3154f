"""Calls into libc for system calls that the standard library does not wrap."""

import ctypes
import os

PR_SET_DUMPABLE = 4
PR_SET_NAME, PR_GET_NAME = 15, 16
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
PR_SET_SECCOMP = 22
PR_SET_TIMERSLACK = 29
SECCOMP_MODE_FILTER = 2
PROT_READ_WRITE = 0x1 | 0x2
MAP_PRIVATE_FIXED = 0x02 | 0x10

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mmap.restype = ctypes.c_size_t


def prctl(option, *args):
    """Calls prctl(2). Raises OSError when it fails."""
    padded = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in (*args, 0, 0, 0, 0)[:4]]
    result = _libc.prctl(ctypes.c_int(option), *padded)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number, *args):
    """Calls a system call by its number. Raises OSError when it fails."""
    padded = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = _libc.syscall(ctypes.c_long(number), *padded)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


# Made ahead, because every child of the zygote passes them.
_DUMPABLE = {value: (ctypes.c_int(PR_SET_DUMPABLE), *map(ctypes.c_ulong, (value, 0, 0, 0))) for value in (False, True)}
_prctl = _libc.prctl


def set_dumpable(dumpable):
    """Sets the dumpable flag. Without it, processes of the same uid cannot use /proc/PID/{mem,fd,environ,root,...}, ptrace,
    pidfd_getfd or process_vm_* on this one."""
    if _prctl(*_DUMPABLE[dumpable]) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def map_privately(fd, address, size, offset):
    """Replaces a mapping by a private one of a file, which keeps what this process writes to itself. Raises OSError when it fails."""
    result = _libc.mmap(*map(ctypes.c_size_t, (address, size, PROT_READ_WRITE, MAP_PRIVATE_FIXED)), ctypes.c_int(fd), ctypes.c_long(offset))
    if result != address:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def trim_heap():
    """Gives the kernel back the pages that malloc holds but does not use. glibc alone can."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(ctypes.c_size_t(0))


def process_name():
    """Returns the kernel's name of this thread: at most 15 bytes."""
    buffer = ctypes.create_string_buffer(16)
    prctl(PR_GET_NAME, buffer)
    return buffer.value


def set_process_name(name):
    """Gives this thread and the processes that it forks a name of at most 15 bytes."""
    prctl(PR_SET_NAME, ctypes.c_char_p(name))


def landlock_abi():
    """Returns the ABI version of Landlock; 0 if the kernel lacks it or denies it to this process."""
    create_ruleset, version = 444, 1
    try:
        return syscall(create_ruleset, 0, 0, version)
    except OSError:
        return 0


def kernel_log():
    """Returns the last bytes of the kernel's log; empty if reading it needs a privilege."""
    read_all = 3
    buffer = ctypes.create_string_buffer(8192)
    size = _libc.klogctl(read_all, buffer, len(buffer))
    return buffer.raw[: max(size, 0)]
