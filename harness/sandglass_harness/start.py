"""The first steps of PID 1. Their order matters: become unreachable, drop inherited descriptors, fork the zygote.

The zygote is forked before the first byte of the channel is read. It holds nothing of any request, and it needs no second
start of the interpreter. Broker and zygote then import their modules in parallel.
"""

import json
import os
import sys
import traceback

from .libc import set_dumpable

CONTROL_FD = 3
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "LOGNAME": "sandbox",
    # The threads of numerical libraries do not survive the fork of a script's process.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def main():
    """Reads the configuration from the only argument, as JSON. The channel is on descriptors 0 and 1."""
    set_dumpable(False)
    if os.getpid() != 1:
        sys.exit("the broker must be PID 1 of a pid namespace: it ends runs by kill(-1)")
    os.closerange(3, 1 << 20)
    config = json.loads(sys.argv[1])
    channel = _move_away(0), _move_away(1)
    pid, control_fd = _fork_zygote(config)
    if config.get("activities"):
        from .broker import workspace as broker
    else:
        from .broker import broker

    broker.serve(config, channel, pid, control_fd)


def _fork_zygote(config):
    import _socket

    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours.detach()
    try:
        os.dup2(theirs.detach(), CONTROL_FD)
        os.closerange(CONTROL_FD + 1, 1 << 20)  # only the broker has the channel
        os.environ.clear()  # set by the launcher and the interpreter
        os.environ.update(ENVIRONMENT)
        from .script import zygote

        zygote.main(config, CONTROL_FD)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _move_away(fd):
    """Moves a descriptor of the channel away from 0 or 1, and opens /dev/null in its place."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, fd)
    os.close(null)
    os.set_blocking(moved, False)
    return moved
