"""Uses features that must stay allowed; emits True for each that works."""

import ctypes
import mmap
import os
import resource
import signal
import socket
import subprocess
import threading

libc = ctypes.CDLL(None, use_errno=True)


def inotify():
    fd = libc.inotify_init1(0)
    watch = libc.inotify_add_watch(fd, b"/tmp", 0x100)
    open("/tmp/seen", "w").close()
    return watch > 0 and len(os.read(fd, 4096)) > 0


def pidfd():
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    fd = os.pidfd_open(pid)
    return os.waitid(os.P_PIDFD, fd, os.WEXITED).si_status == 3


def futex():
    told = []
    ready = threading.Event()
    threads = [threading.Thread(target=lambda: (ready.wait(), told.append(1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    return len(told) == 4


def mbind():
    area = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    result = libc.syscall(ctypes.c_long(237), ctypes.c_long(address), ctypes.c_long(4096), 0, 0, 0, 0)
    # A kernel without NUMA has no such call.
    return result == 0 or ctypes.get_errno() == 38


def close_range():
    fd = os.open("/dev/null", os.O_RDONLY)
    return libc.syscall(ctypes.c_long(436), fd, fd, 0) == 0


def openat2():
    how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
    return libc.syscall(ctypes.c_long(437), -100, b"/dev/null", ctypes.byref(how), ctypes.c_long(24)) >= 0


def epoll_pwait2():
    fd = libc.epoll_create1(0)
    events = ctypes.create_string_buffer(12)
    timeout = (ctypes.c_int64 * 2)(0, 1000)
    return libc.syscall(ctypes.c_long(441), fd, events, 1, ctypes.byref(timeout), None, ctypes.c_long(8)) == 0


def memfd():
    fd = os.memfd_create("x")
    return os.write(fd, b"abc") == 3 and os.pread(fd, 3, 0) == b"abc"


def sockets():
    a, b = socket.socketpair()
    a.sendall(b"x")
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    return b.recv(1) == b"x" and client.fileno() > 0 and socket.socket(socket.AF_INET6).fileno() > 0


def alarm():
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    return told == [1]


emit_result(
    {
        "prlimit read": resource.prlimit(1, resource.RLIMIT_NOFILE)[0] > 0,
        "prlimit own": resource.prlimit(0, resource.RLIMIT_NOFILE, (512, 512)) is not None,
        "clone": os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] == 0,
        "subprocess": subprocess.run(["/bin/sh", "-c", "echo hi"], capture_output=True).stdout == b"hi\n",
        "futex": futex(),
        "memfd": memfd(),
        "inotify": inotify(),
        "pidfd_open": pidfd(),
        "sched_get": len(os.sched_getaffinity(1)) > 0 and os.sched_getscheduler(1) == 0,
        "mbind": mbind(),
        "close_range": close_range(),
        "openat2": openat2(),
        "epoll_pwait2": epoll_pwait2(),
        "sockets": sockets(),
        "signals": alarm(),
    }
)
