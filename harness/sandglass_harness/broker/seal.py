"""Marks the bytes that the broker sends, where a script can open the broker's descriptors.

gVisor shows /proc/1/fd to every process of the same uid, dumpable or not. Bytes that a script writes to the channel lack the
mark, and the host ends the sandbox. The key comes over the channel after the fork of the zygote, so that no script's process
has it in its memory. The input needs no marks: the read end of a pipe takes no writes there.
"""

import errno
import hmac
import os
import select
import struct

from .channel import Outbox

KEY_BYTES = 32
MARK_BYTES = 16
MAX_PIECE = 65536


def receive_key(fd):
    """Reads the key: the first bytes on the channel, which does not block."""
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
    """True if a process of the same uid can write to the other side of this descriptor. Tried with a blank line, which the
    broker ignores."""
    try:
        again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(again, b"\n")
    except OSError as error:
        return error.errno != errno.EBADF  # gVisor opens it, and the kernel below refuses the write
    finally:
        os.close(again)
    return True


class SealedOutbox(Outbox):
    """Sends pieces: a length, a mark, and the bytes. The mark covers the number of the piece, so that none can be sent
    twice."""

    def __init__(self, fd, key):
        super().__init__(fd)
        self._key = key
        self._count = 0

    def put(self, data):
        """Queues a line, and writes as much as the peer takes."""
        for start in range(0, len(data), MAX_PIECE):
            piece = data[start : start + MAX_PIECE]
            mark = hmac.digest(self._key, struct.pack(">Q", self._count) + piece, "sha256")[:MARK_BYTES]
            self._count += 1
            super().put(struct.pack(">I", len(piece)) + mark + piece)
