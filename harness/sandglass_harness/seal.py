"""Marks what the broker sends, where a script can open the broker's descriptors.

gVisor shows /proc/1/fd to every process of the same uid, dumpable or not. What a script writes to the channel there
lacks the mark, and the host gives the sandbox up. The key comes over the channel once the zygote is parted off, so that
no script's process has it in its memory. The way in has no marks: a pipe's end for reading takes no writes there.
"""

import errno
import hmac
import os
import select
import struct

from .wire import Outbox

KEY_BYTES = 32
MARK_BYTES = 16
MAX_PIECE = 65536


def receive_key(fd):
    """The first bytes on the channel, which does not block."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    key = b""
    while len(key) < KEY_BYTES:
        poll.poll()
        data = os.read(fd, KEY_BYTES - len(key))
        if not data:
            os._exit(0)  # the host is gone
        key += data
    return key


def takes_writes(fd):
    """Whether somebody of the same uid can put bytes before who reads this descriptor. Tried with a blank line, which
    the broker ignores."""
    try:
        again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(again, b"\n")
    except OSError as error:
        return error.errno != errno.EBADF  # gVisor opens it, and the kernel below refuses what the end is not for
    finally:
        os.close(again)
    return True


class SealedOutbox(Outbox):
    """Sends pieces of a length, a mark and as many bytes. The mark covers the number of the piece, too: none can be
    sent twice."""

    def __init__(self, fd, key):
        super().__init__(fd)
        self._key = key
        self._count = 0

    def put(self, data):
        """Queues a line; writes at once what the peer takes."""
        for start in range(0, len(data), MAX_PIECE):
            piece = data[start : start + MAX_PIECE]
            mark = hmac.digest(self._key, struct.pack(">Q", self._count) + piece, "sha256")[:MARK_BYTES]
            self._count += 1
            super().put(struct.pack(">I", len(piece)) + mark + piece)
