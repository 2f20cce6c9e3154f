"""Reads everything that a script can read: /proc, /sys, attributes of mounts, and every system call that returns data.

Emits a line of the form `place: value` for each, so that two runs can be compared.
"""

import ctypes
import fcntl
import hashlib
import os
import resource
import socket
import stat
import struct
import time

libc = ctypes.CDLL(None, use_errno=True)
own, zygote = str(os.getpid()), str(os.getppid())
found = {}
MOST_BYTES, MOST_LINES = 1 << 18, 400
# Links to memory, to open files (read below), and to trees that are read already.
SKIPPED = {"mem", "pagemap", "task", "fd", "map_files", "kmsg", "kcore", "kpagecount", "kpageflags", "kpagecgroup", "trace_pipe"}


def short(text):
    return text if len(text) <= 40 else hashlib.sha256(text.encode()).hexdigest()[:12]


def tried(act, *given):
    try:
        return short(repr(act(*given)))
    except (OSError, ValueError, TypeError, OverflowError) as error:
        return type(error).__name__ + " " + str(getattr(error, "errno", ""))


def read(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.read(fd, MOST_BYTES).decode("latin-1")
    finally:
        os.close(fd)


def note_text(place, text):
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        found[place] = short(text)
    elif len(lines) == 1:
        for number, word in enumerate(text.rpartition(")")[2].split() if place.endswith("/stat") else text.split()):
            found[f"{place} [{number}]"] = short(word)
    else:
        for number, line in enumerate(lines):
            head = line.split()[:1]
            label = head[0] if head and not head[0][:1].isdigit() else number
            found[f"{place} {label} {number}"] = short(line)


def walk(path, place, depth=0):
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        found[place] = f"not listed {error.errno}"
        return
    for entry in entries:
        name = entry.name
        if name in SKIPPED or (path == "/proc" and name.isdigit()) or name in ("self", "thread-self", "net") and path == "/proc":
            continue
        below = f"{place}/{name}"
        if entry.is_symlink():
            found[below] = tried(os.readlink, entry.path)
        elif entry.is_dir(follow_symlinks=False):
            if depth < 12:
                walk(entry.path, below, depth + 1)
        else:
            try:
                note_text(below, read(entry.path))
            except OSError as error:
                found[below] = f"not read {error.errno}"


def note_node(path):
    at = os.stat(path, follow_symlinks=False)
    for name in ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_atime_ns", "st_mtime_ns", "st_ctime_ns"):
        found[f"stat {path} {name}"] = str(getattr(at, name))
    found[f"xattrs {path}"] = tried(lambda: [(name, os.getxattr(path, name)) for name in os.listxattr(path)])
    if not stat.S_ISREG(at.st_mode) and not stat.S_ISDIR(at.st_mode):
        return
    fd = os.open(path, os.O_RDONLY)
    for number in (0x80086601, 0x80087601, 0x801C581F):  # flags, generation, extended flags
        found[f"ioctl {path} {number:x}"] = tried(fcntl.ioctl, fd, number, bytes(64))
    for number in (1, 3, 9, 11, 16, 1025, 1032, 1034, 1035, 1037):
        found[f"fcntl {path} {number}"] = tried(fcntl.fcntl, fd, number, bytes(64) if number in (16, 1035, 1037) else 0)
    os.close(fd)


def note_calls():
    got = [(name, getattr(os, name)) for name in dir(os) if name.startswith(("get", "sched_get")) and name not in ("getenv", "getenvb", "get_exec_path", "get_terminal_size", "getrandom", "getxattr", "getpid")]
    for name, act in got:
        for given in ((), (0,), (1,), (int(zygote),), (0, 0), (0, 1)):
            found[f"os.{name}{given}".replace(zygote, "ZYGOTE")] = tried(act, *given)
    for which in range(16):
        for pid in (0, 1, int(zygote)):
            found[f"prlimit {'own' if not pid else 'broker' if pid == 1 else 'zygote'} {which}"] = tried(resource.prlimit, pid, which)
    for number in (2, 3, 5, 7, 9, 11, 13, 16, 19, 21, 25, 27, 30, 34, 37, 39, 40, 42, 46, 51, 52, 56, 58, 64, 66, 68):  # getters
        into = ctypes.create_string_buffer(64) if number in (2, 5, 9, 11, 16, 19, 25, 37, 40) else 0
        came = libc.prctl(number, into, 0, 0, 0)
        found[f"prctl {number}"] = f"{came} {into.raw[:16].hex() if into else ''}"
    for clock in range(12):
        found[f"clock_getres {clock}"] = tried(time.clock_getres, clock)
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        found[f"getrusage {who}"] = tried(resource.getrusage, who)
    for kind in range(3):
        found[f"getitimer {kind}"] = tried(__import__("signal").getitimer, kind)
    for which in (1, 2, 3):
        for who in (0, 1, int(zygote)):
            found[f"ioprio_get {which} {'zygote' if who > 1 else who}"] = str(libc.syscall(252 if os.uname().machine == "x86_64" else 31, which, who))
    found["uname"] = short(repr(os.uname()))
    found["umask"] = str(os.umask(0o022))
    found["cwd"] = os.getcwd()
    found["environment"] = short(repr(sorted(os.environ)))
    for path in ("/", "/workspace", "/tmp", "/var/tmp", "/dev/shm", "/dev/pts"):
        space = os.statvfs(path)
        free = (space.f_bfree, space.f_bavail, space.f_ffree, space.f_favail)
        found[f"statvfs {path} free"] = repr(free)
        found[f"statvfs {path}"] = short(repr([getattr(space, name) for name in ("f_bsize", "f_frsize", "f_blocks", "f_files", "f_flag", "f_namemax")]))
    for number in range(64):
        found[f"sysconf {number}"] = tried(os.sysconf, number)


def note_sockets():
    for family, kind in ((1, 1), (1, 2), (2, 1), (2, 2), (10, 1), (10, 2)):
        with socket.socket(family, kind) as one:
            for level in (0, 1, 6, 17, 41):
                for option in range(80):
                    found[f"getsockopt {family} {kind} {level} {option}"] = tried(one.getsockopt, level, option, 64)


def note_new_files():
    for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm"):
        path = root + "/new"
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        found[f"new {root} st_ino"] = str(os.fstat(fd).st_ino)
        listing = os.open(root, os.O_RDONLY)
        entries = ctypes.create_string_buffer(4096)
        size = libc.syscall(217 if os.uname().machine == "x86_64" else 61, listing, entries, 4096)
        at = 0
        while at < size:
            inode, offset, length = struct.unpack_from("=QqH", entries, at)
            name = entries.raw[at + 19 : at + length].split(b"\0")[0].decode()
            found[f"entry {root} {name}"] = f"{offset}"
            at += length
        os.close(fd)
        os.close(listing)
        os.unlink(path)
    found["new pid"] = own
    with socket.socket(socket.AF_UNIX) as one:
        found["new socket"] = str(os.fstat(one.fileno()).st_ino)
    found["new memfd"] = str(os.fstat(os.memfd_create("x")).st_ino)


for root in ("/", "/workspace", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/dev/pts", "/usr", "/etc", "/proc", "/sandglass"):
    if os.path.isdir(root):
        note_node(root)
for root in ("/dev", "/dev/pts"):
    for name in sorted(os.listdir(root)):
        note_node(f"{root}/{name}")
note_node("/usr/bin/env")
note_calls()
note_sockets()
note_new_files()
walk("/proc", "/proc")
for pid, place in (("1", "broker"), (zygote, "zygote"), (own, "own")):
    walk(f"/proc/{pid}", place)
walk("/sys", "/sys")
emit_result(found)
