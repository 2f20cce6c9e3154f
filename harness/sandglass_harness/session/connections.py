"""Closes the pipes and sockets of a copy. Open ones would keep ports in use, and programs of the cells from reading an end of
file."""

import os
import stat

MAX_NAMED = 20


def close(kept, replaced):
    """Replaces each pipe, socket and terminal, except the descriptors `kept`, by a socket without a peer. Returns the names of the
    lost ones, except `replaced`, which the repairs recreate. The programs at the other ends do not outlive a rollback."""
    import _socket

    ours, peer = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    peer.close()
    closed = []
    try:
        for name in os.listdir("/proc/self/fd"):
            fd = int(name)
            if fd in kept or fd == ours.fileno():
                continue
            kind = _kind_of(fd)
            if kind is not None:
                os.dup2(ours.fileno(), fd, os.get_inheritable(fd))
                if fd not in replaced:
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


def _kind_of(fd):
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISFIFO(mode):
            return "pipe"
        if stat.S_ISSOCK(mode):
            return "socket"
        return "terminal" if stat.S_ISCHR(mode) and os.isatty(fd) else None
    except OSError:  # the descriptor of the listing itself
        return None
