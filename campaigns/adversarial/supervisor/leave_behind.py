"""Leaves data in every place that a later run might read; emits which attempts succeeded."""

import ctypes
import errno
import mmap
import os
import resource
import socket

libc = ctypes.CDLL(None, use_errno=True)


def outcome(action):
    try:
        result = action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done" if result != -1 else errno.errorcode[ctypes.get_errno()]


def write(path):
    with open(path, "w") as file:
        file.write("12345")


found = {}
for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm"):
    write(root + "/.left")
    os.makedirs(root + "/deep/er/.hidden")
    os.symlink("/etc/passwd", root + "/link")
    os.mkfifo(root + "/fifo")
    outcome(lambda: os.setxattr(root, "user.left", b"data"))
    os.chmod(root, 0o711)
    os.utime(root, (12345, 67890))
for name in ("/dev/left", "/dev/pts/left", "/left", "/usr/left", "/etc/left", "/proc/left", "/sandglass/left", "/run/left"):
    found[name] = outcome(lambda: write(name))
for name in ("kernel/msgmax", "kernel/sem", "kernel/shmmax", "kernel/hostname", "fs/mqueue/queues_max"):
    found[name] = outcome(lambda: write("/proc/sys/" + name))
found["shmget"] = outcome(lambda: libc.shmget(4711, 4096, 0o1600))
found["semget"] = outcome(lambda: libc.semget(4711, 1, 0o1600))
found["msgget"] = outcome(lambda: libc.msgget(4711, 0o1600))
found["mq_open"] = outcome(lambda: libc.syscall(numbers["mq_open"], b"left", os.O_CREAT | os.O_RDWR, 0o600, None))
found["add_key"] = outcome(lambda: libc.syscall(numbers["add_key"], b"user", b"left", b"data", 4, -4))
found["keyctl"] = outcome(lambda: libc.syscall(numbers["keyctl"], 0, -4, 1))
found["sethostname"] = outcome(lambda: libc.sethostname(b"left", 4))
os.environ["LEFT"] = "1"
os.umask(0)
os.nice(7)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
os.chdir("/tmp")
kept = socket.socket(socket.AF_UNIX)
kept.bind("\0left")
shared = mmap.mmap(-1, 4096)
shared.write(b"left")
if os.fork() == 0:
    os.setsid()
    import time

    time.sleep(600)
emit_result(found)
