"""The first steps of PID 1, in the order that counts: out of reach, nothing inherited, the zygote on its way.

Imports as little as possible before the zygote is started: the two interpreters then warm up side by side.
"""

import os
import sys

from .syscalls import set_dumpable

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "LOGNAME": "sandbox",
    # Threads of a numerical library do not survive the fork of a script's process.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def main():
    """The harness's configuration is the program's only argument, as JSON; the channel is on descriptors 0 and 1."""
    set_dumpable(False)
    if os.getpid() != 1:
        sys.exit("the broker ends runs by kill(-1): it starts as PID 1 of a pid namespace only")
    os.closerange(3, 1 << 20)
    configuration = sys.argv[1]
    channel = _private(0), _private(1)
    pid, control_fd = _start_zygote(configuration)
    from . import broker

    broker.serve(configuration, channel, pid, control_fd)


def _start_zygote(configuration):
    import _socket

    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    flags = sys.orig_argv[1 : sys.orig_argv.index("-c")]
    code = f"import sys; sys.path.insert(0, {sys.path[0]!r}); from sandglass_harness import zygote; zygote.main()"
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, *flags, "-c", code],
        ENVIRONMENT,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
        ],
    )
    theirs.close()
    ours.send(configuration.encode())
    return pid, ours.detach()


def _private(fd):
    """Moves a descriptor of the channel away from 0 and 1, where nothing of it may stay."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, fd)
    os.close(null)
    os.set_blocking(moved, False)
    return moved
