"""The first steps of PID 1, in the order that counts: out of reach, nothing inherited, the zygote parted off.

The zygote is forked before the first byte of the channel is read: it has nothing of any request, and costs no second
start of the interpreter. Broker and zygote then import what each needs side by side.
"""

import json
import os
import sys
import traceback

from .syscalls import set_dumpable

CONTROL_FD = 3
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
    config = json.loads(sys.argv[1])
    channel = _private(0), _private(1)
    pid, control_fd = _fork_zygote(config)
    from . import broker

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
        os.closerange(CONTROL_FD + 1, 1 << 20)  # the channel is the broker's alone
        os.environ.clear()  # what the launcher and the interpreter left there
        os.environ.update(ENVIRONMENT)
        from . import zygote

        zygote.main(config, CONTROL_FD)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _private(fd):
    """Moves a descriptor of the channel away from 0 and 1, where nothing of it may stay."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, fd)
    os.close(null)
    os.set_blocking(moved, False)
    return moved
