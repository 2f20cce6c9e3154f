"""Writes to every place that accepts a write, except the network; emits the number of these places."""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct

libc = ctypes.CDLL(None, use_errno=True)
taken = 0
MARK = b"12345"


def tried(act, *given):
    global taken
    try:
        if act(*given) != -1:
            taken += 1
    except (OSError, ValueError, TypeError, OverflowError):
        pass


def write(path):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        os.write(fd, MARK)
    finally:
        os.close(fd)


def everything_below(root):
    for at, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in ("task", "fd", "map_files") and not (at == "/proc" and name.isdigit())]
        yield from (os.path.join(at, name) for name in names if name not in ("mem", "clear_refs", "oom_score_adj", "oom_adj"))


for root in ("/proc", f"/proc/{os.getppid()}", "/proc/1", "/proc/self", "/sys"):
    for path in everything_below(root):
        tried(write, path)
roots = ("/workspace", "/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/pts/ptmx", "/dev", "/dev/null", "/usr/bin/env", "/", "/proc")
for path in roots:
    tried(os.chmod, path, 0o711)
    tried(os.utime, path, (12345, 67890))
    tried(os.setxattr, path, "user.left", MARK)
    tried(os.setxattr, path, "security.left", MARK)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        continue
    for number in (4, 8, 10, 1024, 1026, 1033, 1036, 1038):
        tried(fcntl.fcntl, fd, number, struct.pack("Q", 3) if number > 1033 else 1)
    for number in (0x40086602, 0x40087602, 0x401C5820):
        tried(fcntl.ioctl, fd, number, struct.pack("Q", 192) + bytes(32))
    tried(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
for root in roots[:4]:
    for number in range(300):
        with open(f"{root}/{number}", "wb") as file:
            file.write(MARK)
    for number in range(0, 300, 2):
        os.unlink(f"{root}/{number}")
for number in range(80):
    if number not in (1, 4, 22, 26, 38, 59, 65):  # these end the process, at once or at its next step
        tried(libc.prctl, number, 1, 0, 0, 0)
for which in range(16):
    soft, hard = resource.getrlimit(which)
    if which not in (0, 2, 3, 6, 7, 9):
        tried(resource.setrlimit, which, (0, hard))
for family, kind in ((1, 1), (1, 2), (2, 1), (2, 2), (10, 1), (10, 2)):
    one = socket.socket(family, kind)
    for level in (0, 1, 6, 17, 41):
        for option in range(80):
            for value in (1, struct.pack("ii", 1, 1), bytes(16)):
                tried(one.setsockopt, level, option, value)
    if family != 1:
        tried(one.bind, ("127.0.0.1" if family == 2 else "::1", 40000 + kind))
        if kind == 1:
            tried(one.listen, 7)
name = socket.socket(socket.AF_UNIX)
name.bind("\0left")
watch = libc.inotify_init1(0)
for path in roots:
    tried(libc.inotify_add_watch, watch, path.encode(), 0xFFF)
master, slave = os.openpty()
os.write(master, MARK)
tried(os.setpriority, os.PRIO_PROCESS, 0, 19)
tried(os.sched_setscheduler, 0, os.SCHED_BATCH, os.sched_param(0))
tried(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})
os.umask(0)
os.environ["LEFT"] = "1"
signal.setitimer(signal.ITIMER_PROF, 500)
libc.mlockall(1)
for _ in range(40):
    if os.fork() == 0:
        os._exit(5)
    os.wait()
for number in range(40, 64):
    tried(os.kill, os.getppid(), number)
if os.fork() == 0:
    os.setsid()
    signal.pause()
emit_result(taken)
