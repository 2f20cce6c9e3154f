"""Receives the three standard streams of a harness from the container beside it: the first steps of a pod's PID 1.

The kernel tells the uid of whoever connects. The listener takes one connection and is gone before any script exists. The streams
of the container itself are not used: a runtime writes them to the logs of the node.

gVisor names the asking process as its own peer, but adds the uid of the sender to each message. So there each side sends one.
"""

import json
import os
import stat
import sys

import _socket

# Writable file systems in which scripts can write to nothing; the harness checks /dev.
EXPECTED = ("/", "/proc", "/dev", "/dev/pts")
FDS_BYTES = 12  # three descriptors
UCRED_BYTES = 12  # struct ucred: pid, uid, gid


def check_files(sizes):
    """Ends if a script could write to other file systems than these, or one of them is larger than asked for."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split(" ", 6)[4:6] for line in file]
    for path, options in mounts:
        if path in sizes or path in EXPECTED or path.startswith(("/proc/", "/sys/")) or "ro" in options.split(","):
            continue
        try:
            mode = os.stat(path).st_mode
        except PermissionError:  # as the file for a last message, in a directory that only root may enter
            continue
        if stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and os.access(path, os.W_OK)):
            sys.exit(f"scripts could write to {path}, a file system without a limit; see docs/kubernetes.md")
    for path, size in sizes.items():
        found = os.statvfs(path)
        if found.f_blocks * found.f_frsize > size + os.sysconf("SC_PAGE_SIZE"):
            sys.exit(f"{path} has no limit of {size} bytes: the cluster does not size volumes in memory")


def check_volumes(volumes, is_gvisor):
    """Ends if a volume of the user has nothing at a path, or all of an image where a part of it was asked for."""
    for path, below in volumes.items():
        try:
            names = os.listdir(path)
        except OSError as error:
            sys.exit(f"the volume has nothing there that scripts can read: {error}")
        if not names:  # Kubernetes makes a missing directory of a claim
            sys.exit(f"{path}: the volume has nothing there")
        # containerd 2.1 takes no notice of a path in an image.
        if below and is_whole(path, below, is_gvisor):
            sys.exit(f"{path}: the volume has the whole image there, not {below}; containerd 2.2 mounts a part of one")


def is_whole(path, below, is_gvisor):
    """True if what is mounted at a path is not the directory `below` of its file system."""
    if is_gvisor:  # there each mount has the root of a file system
        return os.path.isdir(os.path.join(path, below))
    return not mounted_root(path).endswith("/" + below.replace(" ", "\\040"))


def mounted_root(path):
    """Returns the directory of its file system that is mounted at a path."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split(" ", 5)[3:5] for line in file]
    return next((root for root, point in reversed(mounts) if point == path), "")


def check_process_count():
    """Ends if the kernel does not count the processes of this user, which nobody else on the node has."""
    import resource

    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        try:
            os._exit(0 if os.fork() == 0 else 1)
        except OSError:
            os._exit(2)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 2:
        sys.exit("the kernel does not limit the number of processes of a user here")


def uid_in(credentials):
    """Returns the uid of a `struct ucred`."""
    return int.from_bytes(credentials[4:8], sys.byteorder)


def sender_in(passed):
    """Returns the uid of the sender of a message, which the kernel adds to it."""
    found = [part for _, kind, part in passed if kind == _socket.SCM_CREDENTIALS]
    return uid_in(found[0]) if found else None


def assert_uid(found, uid):
    if found != uid:
        sys.exit(f"uid {found} connected to the sandbox")


def receive_streams(name, uid, start_sec, is_gvisor=False):
    """Waits for the container beside this one, and puts its streams in place of those of this process."""
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    listener.bind("\0" + name)
    listener.listen(1)
    listener.settimeout(start_sec)
    try:
        fd, _ = listener._accept()
    except TimeoutError:
        sys.exit("nobody connected to the sandbox in time")
    listener.close()
    peer = _socket.socket(fileno=fd)
    peer.settimeout(start_sec)
    if is_gvisor:
        peer.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        peer.send(b"\n")  # the relay waits for it
    else:
        assert_uid(uid_in(peer.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, UCRED_BYTES)), uid)
    _, passed, _, _ = peer.recvmsg(1, _socket.CMSG_SPACE(FDS_BYTES) + _socket.CMSG_SPACE(UCRED_BYTES))
    if is_gvisor:
        assert_uid(sender_in(passed), uid)
    peer.close()
    data = b"".join(part for _, kind, part in passed if kind == _socket.SCM_RIGHTS)
    fds = [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]
    if len(fds) != 3:
        sys.exit("the container beside the sandbox passed no streams")
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)


def join(config):
    receive_streams(config["name"], config["uid"], config["start_sec"], config["gvisor"])
    check_files(config["sizes"])
    check_volumes(config["volumes"], config["gvisor"])
    check_process_count()


join(json.loads(sys.argv[2]))
