"""Connects the streams of one `exec` to the broker of a pod: the program that an engine runs in the container beside the sandbox.

A run ends by kill(-1), so nothing but broker and zygote can live in the sandbox's own container. This program passes standard
output and error of the `exec` to the broker and is not on their way. Standard input comes in pieces of a length and as many bytes;
an empty piece is a heartbeat. The sandbox ends if none arrives for too long, or when this program ends.
"""

import os
import select
import signal
import sys
import time

import _socket

PIECE_BYTES = 65536
HEADER_BYTES = 4
UCRED_BYTES = 12  # struct ucred: pid, uid, gid
LOOK_SEC = 10
STUCK_SEC = 300  # a host that vanishes while the broker takes nothing is not noticed otherwise


def keep(start_sec):
    """The container's own process. Ends with the program that an `exec` starts, or without one in time."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # without a handler PID 1 would not get it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    wait_sec = start_sec
    while signal.sigtimedwait({signal.SIGTERM}, wait_sec) is None:
        wait_sec = LOOK_SEC
        if not any(name.isdigit() and name != "1" for name in os.listdir("/proc")):
            return


def connect(name, uid, start_sec, is_gvisor):
    """Connects to the broker, which may not listen yet. The kernel tells its uid: gVisor's only with a message."""
    deadline = time.monotonic() + start_sec
    while True:
        peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        try:
            peer.connect("\0" + name)
            break
        except OSError as error:
            peer.close()
            if time.monotonic() > deadline:
                sys.exit(f"no broker listens: {error}")
            time.sleep(0.005)
    if is_gvisor:
        peer.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        peer.settimeout(start_sec)
        _, passed, _, _ = peer.recvmsg(1, _socket.CMSG_SPACE(UCRED_BYTES))
        found = sender_in(passed)
    else:
        found = uid_in(peer.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, UCRED_BYTES))
        if found == os.getuid():
            sys.exit("this kernel does not tell the uid of a peer")
    if found != uid:
        sys.exit(f"uid {found} listens in place of the broker")
    return peer


def uid_in(credentials):
    """Returns the uid of a `struct ucred`."""
    return int.from_bytes(credentials[4:8], sys.byteorder)


def sender_in(passed):
    """Returns the uid of the sender of a message, which the kernel adds to it."""
    found = [part for _, kind, part in passed if kind == _socket.SCM_CREDENTIALS]
    return uid_in(found[0]) if found else None


def hand_over(peer, is_gvisor):
    """Gives the broker its three streams. Returns the writing end of the first."""
    # gVisor may let scripts open the broker's descriptors through /proc: those of pipes, but not those of sockets.
    taken, ours = (one.detach() for one in _socket.socketpair()) if is_gvisor else os.pipe()
    fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (taken, 1, 2))
    peer.sendmsg([b"\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
    peer.close()
    os.close(taken)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 1)  # the broker's end must be the end of the stream
    os.dup2(null, 2)
    return ours


class Pieces:
    """Takes the lengths out of a stream, and finds its heartbeats."""

    def __init__(self):
        self._left = 0
        self._header = b""

    def push(self, data):
        """Returns the bytes for the broker."""
        out = []
        while data:
            if self._left:
                out.append(data[: self._left])
                data = data[self._left :]
                self._left -= len(out[-1])
                continue
            taken = HEADER_BYTES - len(self._header)
            self._header += data[:taken]
            data = data[taken:]
            if len(self._header) == HEADER_BYTES:
                self._left = int.from_bytes(self._header, "big")
                self._header = b""
        return b"".join(out)


def relay(to_broker, silence_sec):
    """Passes pieces on until either side ends, or the host is silent. Reads nothing while the broker takes nothing."""
    os.set_blocking(to_broker, False)
    pieces, pending = Pieces(), b""
    heard = time.monotonic()
    while True:
        poll = select.poll()
        poll.register(0, 0 if pending else select.POLLIN)
        poll.register(to_broker, select.POLLOUT if pending else 0)
        limit_sec = STUCK_SEC if pending else silence_sec
        wait = max(0, heard + limit_sec - time.monotonic()) * 1000
        ready = dict(poll.poll(wait))
        if not ready and time.monotonic() - heard >= limit_sec:
            return
        if ready.get(to_broker, 0) & (select.POLLERR | select.POLLHUP):
            return
        if pending:
            if ready.get(0, 0) & (select.POLLERR | select.POLLHUP):
                return
            if ready.get(to_broker):
                pending = pending[os.write(to_broker, pending) :]
                heard = time.monotonic()
        elif ready.get(0):
            data = os.read(0, PIECE_BYTES)
            if not data:
                return
            heard = time.monotonic()
            pending = pieces.push(data)


def main():
    task, *rest = sys.argv[1:]
    if task == "keep":
        keep(float(rest[0]))
        return
    name, uid, start_sec, silence_sec, *kernel = rest
    is_gvisor = kernel == ["gvisor"]
    try:
        to_broker = hand_over(connect(name, int(uid), float(start_sec), is_gvisor), is_gvisor)
        relay(to_broker, float(silence_sec))
    except SystemExit as end:  # told before the end of the container can come first
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr, flush=True)
            sys.exit(1)
        raise
    finally:
        os.kill(1, signal.SIGTERM)


main()
