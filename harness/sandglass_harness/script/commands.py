"""The zygote's end of the broker's commands: messages with descriptors, answers, and clean-up after a script."""

import _socket
import array
import os
import signal
import struct

MAX_FDS = 4  # per message
_ALL_SIGNALS = signal.valid_signals()


def receive_with_fds(control, size=16):
    """Returns the next message and its descriptors. The message is empty if the broker is gone."""
    try:
        message, ancillary, _, _ = control.recvmsg(size, _socket.CMSG_LEN(MAX_FDS * 4))
    except ConnectionResetError:  # the broker ended without reading an answer
        return b"", []
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % 4])
    return message, list(fds)


def answer(control, number):
    """Sends the broker a number."""
    try:
        control.send(struct.pack("=i", number))
    except BrokenPipeError:  # the broker has ended; a traceback would mix with its last output
        os._exit(0)


def discard_signals():
    """Discards the signals that a script sent to this process. They are blocked and would stay queued, so that the next run could
    read data from them, and would find less room in the queue."""
    while signal.sigtimedwait(_ALL_SIGNALS, 0) is not None:
        pass


def reap_others():
    """Reaps other children, because a script can create siblings of its process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
