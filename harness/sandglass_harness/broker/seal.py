"""Authenticates the bytes on the channel if a script can open the broker's descriptors.

gVisor shows /proc/1/fd to every process of the same uid, dumpable or not. Bytes that a script writes to the channel lack a valid
HMAC tag, and the host ends the sandbox. The key arrives over the channel after the fork of the zygote, so that no script's
process has it in its memory.

Nobody can write to the input, which is the read end of a pipe, but a script can consume bytes from it. In a workspace it also
carries bytes that others chose, such as the input of a program. If a script consumed the bytes before them, they would be parsed
as requests. So there the host tags its bytes as well, and missing bytes end the sandbox.
"""

import errno
import hmac
import os
import select
import struct

from .channel import GatheringOutbox

KEY_BYTES = 32
TAG_BYTES = 16
MAX_PIECE = 65536
HEADER = struct.Struct(">I16s")
_OF_HOST = 1 << 63  # set in the numbers of the host's pieces, so that none passes for one of the harness


def receive_key(fd):
    """Reads the key, which is the first bytes on the non-blocking channel."""
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
    """True if a process of the same uid can write to the other side of this descriptor. Probes with a blank line, which the
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


def shut(fd):
    """Closes standard error. Returns the checks of a sealed channel, whose input is `fd`."""
    checks = {"sealed": True, "input_protected": not takes_writes(fd)}
    os.dup2(0, 2)  # scripts could open it and write to it
    return checks


class SealedOutbox(GatheringOutbox):
    """Sends pieces: a length, a tag and the bytes. The tag covers the number of the piece, so that none can be replayed."""

    def __init__(self, fd, key):
        super().__init__(fd)
        self._key = key
        self._count = 0

    def put(self, data):
        """Queues a frame, in pieces."""
        for start in range(0, len(data), MAX_PIECE):
            piece = data[start : start + MAX_PIECE]
            tag = _compute_tag(self._key, self._count, piece)
            self._count += 1
            super().put(HEADER.pack(len(piece), tag) + piece)


class Opener:
    """Verifies and removes the tags of the host's pieces."""

    def __init__(self, key):
        self._key = key
        self._count = _OF_HOST
        self._held = b""

    def open(self, data):
        """Returns the content of the pieces that `data` completes. Raises ValueError where bytes are missing or changed."""
        data = self._held + data if self._held else data
        found, at = [], 0
        while len(data) - at >= HEADER.size:
            length, tag = HEADER.unpack_from(data, at)
            if length > MAX_PIECE:
                raise ValueError(f"a piece of {length} bytes is longer than {MAX_PIECE}")
            start, end = at + HEADER.size, at + HEADER.size + length
            if end > len(data):
                break
            piece = data[start:end]
            if not hmac.compare_digest(tag, _compute_tag(self._key, self._count, piece)):
                raise ValueError("a piece does not have a valid tag of the host")
            self._count += 1
            found.append(piece)
            at = end
        self._held = data[at:]
        return b"".join(found)


def _compute_tag(key, number, piece):
    return hmac.digest(key, struct.pack(">Q", number) + piece, "sha256")[:TAG_BYTES]
