"""Calls each refused system call with arguments that do no harm if it is let through; emits the names by errno."""

import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *args):
    """The name of the errno, or the result."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result


def of_child(action):
    """Returns the end of a child that calls `action`: its signal or its exit code."""
    pid = os.fork()
    if pid == 0:
        action()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"


def by_outcome(pairs):
    found = {}
    for name, outcome in pairs:
        found.setdefault(str(outcome), []).append(name)
    return found


pids = {"broker": 1, "zygote": os.getppid(), "itself by number": os.getpid()}
refused = by_outcome((name, call(numbers[name], -1, -1, -1, -1, -1, -1)) for name in names_refused)
others = by_outcome(
    (f"{name} {who}", call(numbers[name], pid, 0, 0)) for name in names_own_pid for who, pid in pids.items()
)
families = by_outcome((family, call(numbers["socket"], family, 2, 0)) for family in range(64) if family not in families_allowed)
# The kernel reads an int: bits above it must not hide the family.
families_high = call(numbers["socket"], (1 << 32) | 16, 3, 0)
NEW = {"NEWTIME": 0x80, "NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000,
       "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}  # fmt: skip
SIGCHLD = 17


def clone(flags):
    outcome = call(numbers["clone"], flags | SIGCHLD, 0, 0, 0, 0)
    if outcome == 0:
        os._exit(0)
    return "a child" if isinstance(outcome, int) else outcome


# For clone(2), 0x80 is part of the exit signal: only clone3 and unshare take NEWTIME.
namespaces = by_outcome((name, clone(flag)) for name, flag in NEW.items() if name != "NEWTIME")
null = os.open("/dev/null", os.O_RDWR)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
terminal = by_outcome(
    (name, call(numbers["ioctl"], null, code, 0))
    for name, code in (("TIOCSTI", TIOCSTI), ("TIOCLINUX", TIOCLINUX), ("TIOCSTI above an int", (1 << 32) | TIOCSTI))
)
x32 = of_child(lambda: call(0x40000000 | 39))


def int_0x80():
    """Calls getpid by the entry point of 32-bit programs."""
    import mmap

    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()


is_x86 = os.uname().machine == "x86_64"
emit_result(
    {
        "refused": refused,
        "others": others,
        "families": families,
        "families_high": families_high,
        "namespaces": namespaces,
        "clone3": call(numbers["clone3"], 0, 0),
        "terminal": terminal,
        "x32": x32 if is_x86 else "signal 31",
        "i386": of_child(int_0x80) if is_x86 else "signal 31",
    }
)
