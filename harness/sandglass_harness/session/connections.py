"""Closes the pipes and sockets of a copy. Open ones would keep ports in use, and programs of the cells from reading an end of
file."""

import os
import stat

from . import proc

MAX_NAMED = 20


def close(kept, replaced, renewed, outputs):
    """Replaces each pipe, socket and terminal, except the descriptors `kept`, by a socket without a peer. Returns the names of the
    lost ones, except `replaced`, which the repairs recreate. The programs at the other ends do not outlive a rollback. A duplicate
    of an output pipe becomes one of the new pipe: `renewed` maps the identity of the old one to the descriptor of the new one.
    `outputs` maps 1 and 2 to the new pipes, which stand in for others there."""
    import _socket

    ours, peer = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    peer.close()
    closed = []
    try:
        for name in proc.list_names("/proc/self/fd"):
            fd = int(name)
            if fd in kept or fd == ours.fileno():
                continue
            kind, identity = _look_at(fd)
            if kind is None:
                continue
            new = renewed.get(identity)
            os.dup2(outputs.get(fd, ours.fileno()) if new is None else new, fd, os.get_inheritable(fd))
            if new is None and fd not in replaced:
                closed.append(f"{kind} {fd}")
    finally:
        ours.close()
    return closed


def describe_closed(closed):
    """Returns a list with the message of a rollback about closed descriptors; empty if there are none."""
    if not closed:
        return []
    more = len(closed) - MAX_NAMED
    return [f"pipes and sockets are closed: {', '.join(closed[:MAX_NAMED])}{f' and {more} more' if more > 0 else ''}"]


def identity_of(fd):
    """Returns what tells a pipe from all others."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _look_at(fd):
    """Returns (kind, identity); the kind is None for what is not closed."""
    try:
        status = os.fstat(fd)
        mode, kind = status.st_mode, None
        if stat.S_ISFIFO(mode):
            kind = "pipe"
        elif stat.S_ISSOCK(mode):
            kind = "socket"
        elif stat.S_ISCHR(mode) and os.isatty(fd):
            kind = "terminal"
        return kind, (status.st_dev, status.st_ino)
    except OSError:  # the descriptor of the listing itself
        return None, None
