"""Notes the open descriptors of a process, and makes those of files a forked copy's own.

A fork shares the position in a file with its origin, and sees what that writes. Locks of fcntl(2) stay behind.
"""

import fcntl
import os
import stat

MAX_NOTED = 1000
MAX_NAMES = 20  # of shared memory, in a sentence
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_SYNC | os.O_DSYNC | getattr(os, "O_DIRECT", 0)
_SQLITE_LOCKS = range(0x40000000, 0x40000000 + 512)  # the bytes that SQLite locks during a transaction


class Noted:
    """An open descriptor at the time of a checkpoint."""

    __slots__ = ("fd", "flags", "locks", "position", "stat")

    def __init__(self, fd, status, position, flags, locks):
        self.fd, self.stat, self.position, self.flags, self.locks = fd, status, position, flags, locks

    @property
    def is_file(self):
        """True for a regular file that has a position."""
        return self.position is not None

    @property
    def is_written(self):
        """True for a file that can be written through this descriptor."""
        return self.flags & os.O_ACCMODE != os.O_RDONLY

    @property
    def is_in_transaction(self):
        """True if SQLite is in a transaction on this file."""
        return any(kind == "POSIX" and start in _SQLITE_LOCKS for kind, _, start, _ in self.locks)

    def is_here(self):
        """True if the descriptor still stands for the same thing."""
        try:
            now = os.fstat(self.fd)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (self.stat.st_dev, self.stat.st_ino)

    def name(self):
        """Returns the path of the file as the kernel has it."""
        try:
            return os.readlink(f"/proc/self/fd/{self.fd}").removesuffix(" (deleted)")
        except OSError:
            return f"descriptor {self.fd}"


def note():
    """Returns the open descriptors, at most MAX_NOTED."""
    found = []
    for name in os.listdir("/proc/self/fd")[:MAX_NOTED]:
        fd = int(name)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                found.append(Noted(fd, status, None, 0, ()))
                continue
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            if flags & os.O_PATH:
                continue
            found.append(Noted(fd, status, os.lseek(fd, 0, os.SEEK_CUR), flags, _locks_of(fd)))
        except OSError:  # the descriptor of the list itself, or one that another thread has closed
            continue
    return found


def find_transactions():
    """Returns the names of files on which SQLite is in a transaction."""
    return sorted({os.path.basename(each.name()) for each in note() if each.is_in_transaction})


def restore(noted):
    """Gives this process descriptors of its own for the files, with the positions and sizes that were noted. Returns sentences about
    everything that stays as the other process left it."""
    files = [each for each in noted if each.is_file and each.is_here()]
    databases = {each.name() for each in files if each.is_in_transaction}
    words = [f"{os.path.basename(name)}: SQLite was in a transaction there; close the connection, and connect again" for name in databases]
    of_sqlite = {f"{name}{end}" for name in databases for end in ("", "-journal", "-wal", "-shm")}
    for each in files:
        if each.name() in of_sqlite:
            _disable(each.fd)
        else:
            words += _restore_file(each)
    for each in files:  # after all of them: closing one descriptor of a file drops the process's locks on it
        words += _lock_again(each) if each.is_here() else ()
    return list(dict.fromkeys(words))


def _restore_file(each):
    if not any(kind == "FLOCK" or kind == "OFDLCK" for kind, *_ in each.locks):  # those would go with the descriptor
        _reopen(each)
    try:
        os.lseek(each.fd, each.position, os.SEEK_SET)
        return _restore_size(each) if each.is_written else []
    except OSError as error:
        return [f"{_base_name(each)}: {error.strerror}"]


def _reopen(each):
    try:
        own = os.open(f"/proc/self/fd/{each.fd}", each.flags & _KEPT_FLAGS | os.O_CLOEXEC)
    except OSError:  # the mode of the file has changed: the position stays shared
        return
    os.dup2(own, each.fd, inheritable=os.get_inheritable(each.fd))
    os.close(own)


def _restore_size(each):
    now = os.fstat(each.fd)
    if now.st_size < each.stat.st_size:
        return [f"{_base_name(each)}: the file is shorter than it was"]
    # A file that is written elsewhere than at its end, such as a database, is whole only as it is.
    is_appended = each.flags & os.O_APPEND or each.position == each.stat.st_size
    if is_appended and now.st_size > each.stat.st_size:
        os.ftruncate(each.fd, each.stat.st_size)
    elif now.st_mtime_ns != each.stat.st_mtime_ns:
        return [f"{_base_name(each)}: what was written over stays so"]
    return []


def _lock_again(each):
    for kind, is_exclusive, start, length in each.locks:
        if kind != "POSIX":
            continue
        try:
            way = fcntl.LOCK_EX if is_exclusive else fcntl.LOCK_SH
            fcntl.lockf(each.fd, way | fcntl.LOCK_NB, length, start, os.SEEK_SET)
        except OSError:
            return [f"{_base_name(each)}: the lock is lost"]
    return []


def _disable(fd):
    """Makes every further use of a descriptor fail: what SQLite still has to write would damage the file."""
    nothing = os.open("/", os.O_PATH | os.O_CLOEXEC)
    os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)


def find_shared_memory():
    """Returns the names of the shared memory that this process can write."""
    found = []
    with open("/proc/self/maps", "rb") as lines:
        for line in lines:
            fields = line.split(None, 5)
            if fields[1][1:2] == b"w" and fields[1][3:4] == b"s":
                path = os.fsdecode(fields[5].strip()) if len(fields) > 5 else ""
                path = path.removesuffix(" (deleted)")
                found.append("memory without a name" if path in ("", "/dev/zero") else os.path.basename(path))
    return list(dict.fromkeys(found))


def _locks_of(fd):
    """Returns (kind, is exclusive, start, length) of the locks that this process has on a file. A length of 0 is to the end."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        text = file.read(1 << 16)
    found = []
    for line in text.splitlines():
        if line.startswith(b"lock:"):
            _, _, kind, _, way, *_, start, end = line.split()
            first = int(start)
            found.append((kind.decode(), way == b"WRITE", first, 0 if end == b"EOF" else int(end) - first + 1))
    return tuple(found)


def _base_name(each):
    return os.path.basename(each.name())
