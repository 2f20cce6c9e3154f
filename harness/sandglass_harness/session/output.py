"""The streams stdout and stderr of a copy, whose buffers hold what its origin has not flushed."""

import os
import sys


def drop():
    """Drops buffered output that the origin of this copy will flush itself. The origin cannot flush before the fork, because it
    could wait for a thread that prints while nobody reads."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for fd, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        try:
            own = os.dup(fd)
        except OSError:  # a cell has closed it
            continue
        os.dup2(nothing, fd)
        try:
            stream.flush()
        except Exception:  # a cell has closed it
            pass
        os.dup2(own, fd)
        os.close(own)
    os.close(nothing)


def renew():
    """Drops buffered output by replacing the buffers of the streams. A thread that was lost in the fork may hold the lock of an old
    buffer, which then could not even be closed."""
    for fd, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        try:
            _old_buffers.append(stream.buffer)
            settings = {name: getattr(stream, name) for name in ("encoding", "errors", "line_buffering", "write_through")}
            stream.__init__(open(fd, "wb", closefd=False), **settings)
        except Exception:  # a cell has closed it
            pass


_old_buffers = []
