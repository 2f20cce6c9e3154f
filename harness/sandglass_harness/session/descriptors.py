"""Records the open descriptors of a process, and restores those of files in a forked copy.

A fork sees what its origin writes, and does not inherit locks of fcntl(2).
"""

import fcntl
import os
import stat
import struct

from . import own_files, proc, sqlite_files

MAX_NOTED = 1000
MAX_NAMES = 20  # names of shared memory in a message
_OF_DESCRIPTION = ("FLOCK", "OFDLCK")  # the kinds of locks that belong to an open file description
_SHARED = "it cannot be opened again, so copies of the session share its position and locks"
_COUNT_STAYS = "stays shared with the session that this branch comes from"
_CONNECT_AGAIN = "close the connection, and connect again"
_LOCK_STAYS = "the lock stays with the session that this branch comes from"


class Noted:
    """An open descriptor at the time of a checkpoint."""

    __slots__ = ("count", "fd", "flags", "is_changed", "is_shared", "locks", "mtime_ns", "position", "sample", "sampled", "size", "stat")

    def __init__(self, fd, status, position, flags, locks):
        self.fd, self.stat, self.position, self.flags, self.locks = fd, status, position, flags, locks
        self.size, self.mtime_ns = status.st_size, status.st_mtime_ns
        self.count = None  # of an eventfd
        self.is_changed = False  # True if others have changed the file since
        self.is_shared = False  # True in a copy that could not open the file again
        self.sample = None  # of the content, in a copy; None if it could not be read
        self.sampled = None  # the size at that time; None before

    @property
    def has_position(self):
        """True for a regular file or a directory. Both have a position."""
        return self.position is not None

    @property
    def is_written(self):
        """True for a file that can be written through this descriptor."""
        return self.flags & os.O_ACCMODE != os.O_RDONLY

    @property
    def is_appended(self):
        """True for a file that grows at its end. Another one, such as a database, is consistent only in its present state."""
        return bool(self.flags & os.O_APPEND) or self.position == self.size

    def is_here(self):
        """True if the descriptor still refers to the same file."""
        try:
            now = os.fstat(self.fd)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (self.stat.st_dev, self.stat.st_ino)

    def name(self):
        """Returns the path of the file in /proc."""
        try:
            return os.readlink(f"/proc/self/fd/{self.fd}").removesuffix(" (deleted)")
        except OSError:
            return f"descriptor {self.fd}"


def note():
    """Returns the open descriptors. One more than MAX_NOTED stands for further ones."""
    found = []
    for name in proc.list_names("/proc/self/fd"):
        fd = int(name)
        if len(found) > MAX_NOTED:
            break
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                found.append(_note_other(fd, status))
                continue
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            if flags & os.O_PATH:
                continue
            found.append(Noted(fd, status, os.lseek(fd, 0, os.SEEK_CUR), flags, _locks_of(fd)))
        except OSError:  # the descriptor of the listing itself, or one that another thread has closed
            continue
    return found


def _note_other(fd, status):
    noted = Noted(fd, status, None, 0, ())
    if stat.S_IFMT(status.st_mode) == 0:  # it belongs to no file system, such as an eventfd
        noted.count = _count_of(fd)
    return noted


def find_transactions():
    """Returns the names of files on which SQLite is in a transaction."""
    return sorted(map(os.path.basename, sqlite_files.find(note())[0]))


def find_changed(noted):
    """Returns [descriptor, position, size, time of the last change] of each written file that others, or threads of this process,
    have changed since it was noted."""
    changed = []
    for each in noted:
        if each.has_position and each.is_written and each.is_here():
            now = os.fstat(each.fd)
            if (now.st_size, now.st_mtime_ns) != (each.size, each.mtime_ns):
                changed.append([each.fd, os.lseek(each.fd, 0, os.SEEK_CUR), now.st_size, now.st_mtime_ns])
    return changed


def note_changed(noted, changed):
    """Brings the record up to date with what find_changed() returned in another process with the same open files."""
    states = {fd: state for fd, *state in changed}
    for each in noted:
        if each.fd in states and each.has_position and each.is_written:
            position, size, each.mtime_ns = states[each.fd]
            each.is_changed = True
            if each.is_appended and size >= each.size:
                each.position = position
            each.size = size


def restore(noted, removes=False, is_branch=False):
    """Restores positions, sizes and locks of the files in this process, which make_own() has opened again. `removes` what was
    appended to them since; only the process that this one replaces may have done that. Returns messages about everything that could
    not be restored."""
    files = [each for each in noted if each.has_position and each.is_here()]
    sizes = {each.fd: os.fstat(each.fd) for each in files}  # before any is changed: two descriptors can have the same file
    overwritten = {each.fd for each in files if _is_overwritten(each, sizes[each.fd])}
    names = {each.fd: each.name() for each in files}
    in_transaction, in_wal = sqlite_files.find(files)
    messages = [f"{os.path.basename(name)}: SQLite was in a transaction there; {_CONNECT_AGAIN}" for name in sorted(in_transaction)]
    database_of = {f"{name}{part}": name for name in (*in_transaction, *in_wal) for part in sqlite_files.PARTS}
    for each in files:
        database = database_of.get(names[each.fd])
        if database in in_transaction:
            _disable(each)
        elif database in in_wal:
            messages += _describe_wal(each, sizes[each.fd], database)
        else:
            messages += _restore_file(each, sizes[each.fd], each.fd in overwritten, removes)
    for each in files:  # last, because closing any descriptor of a file drops the process's locks on it
        messages += () if database_of.get(names[each.fd]) in in_transaction else _lock_again(each, is_branch)
    lost = set(in_transaction)
    for database in sorted(in_wal):
        if not _is_wal_usable([each for each in files if database_of.get(names[each.fd]) == database]):
            lost.add(database)
            messages.append(f"{os.path.basename(database)}: SQLite has lost its connection; {_CONNECT_AGAIN}")
    sqlite_files.close_connections(lost)
    messages += _describe_counts(noted, is_branch)
    if len(noted) > MAX_NOTED:
        messages.append(f"descriptors beyond the first {MAX_NOTED}: not restored")
    return list(dict.fromkeys(messages))


def _describe_wal(each, now, database):
    """Returns messages about a file of SQLite in WAL mode. Nothing is removed from it, because its index has the entries."""
    if sqlite_files.is_index(each.name()) or now.st_mtime_ns == each.mtime_ns:
        return []
    return [f"{os.path.basename(database)}: overwritten content is not restored"]


def _is_wal_usable(files):
    """Disables a connection of SQLite, and returns False, if its locks could not be taken again, or its files were removed when
    another connection, as the last one, was closed."""
    if all(os.fstat(each.fd).st_nlink > 0 and set(each.locks) <= set(_locks_of(each.fd)) for each in files):
        return True
    for each in files:
        _disable(each)
    return False


def _restore_file(each, now, is_overwritten, removes):
    messages = [f"{_base_name(each)}: {_SHARED}"] if each.is_shared else []
    try:
        os.lseek(each.fd, each.position, os.SEEK_SET)
        return messages + (_restore_size(each, now, is_overwritten, removes) if each.is_written else [])
    except OSError as error:
        return [*messages, f"{_base_name(each)}: {error.strerror}"]


def _restore_size(each, now, is_overwritten, removes):
    if now.st_size < each.size:
        return [f"{_base_name(each)}: the file is shorter than it was"]
    if is_overwritten:
        return [f"{_base_name(each)}: overwritten content is not restored"]
    if each.is_appended and now.st_size > each.size:
        if not removes or each.sample is None:
            return [f"{_base_name(each)}: what was appended stays"]
        os.ftruncate(each.fd, each.size)
    return []


def _is_overwritten(each, now):
    """True for a file that no longer starts with its old content, as far as that is known."""
    if not each.is_written or now.st_size < each.size:
        return False
    has_grown = each.is_appended and now.st_size > each.size
    if not has_grown and now.st_mtime_ns != each.mtime_ns:
        return True
    if not has_grown and each.is_changed:  # so the sample is older
        return False
    # Also of a file that seems unchanged, because two changes within a tick of the kernel's clock have the same time.
    return each.sample is not None and own_files.sample(each.fd, each.sampled) != each.sample


def _lock_again(each, is_branch):
    for kind, is_exclusive, start, length in each.locks:
        if kind in _OF_DESCRIPTION and each.is_shared and is_branch:  # the origin has the lock, and would lose it
            return [f"{_base_name(each)}: {_LOCK_STAYS}"]
        try:
            _lock(each.fd, kind, is_exclusive, start, length)
        except OSError:
            return [f"{_base_name(each)}: {_LOCK_STAYS if is_branch else 'the lock is lost'}"]
    return []


def _lock(fd, kind, is_exclusive, start, length):
    way = (fcntl.LOCK_EX if is_exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
    if kind == "FLOCK":
        fcntl.flock(fd, way)
    elif kind == "OFDLCK":
        of_kernel = fcntl.F_WRLCK if is_exclusive else fcntl.F_RDLCK
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", of_kernel, os.SEEK_SET, start, length, 0))
    elif kind == "POSIX":
        fcntl.lockf(fd, way, length, start, os.SEEK_SET)


def _disable(each):
    """Makes every further use of a file of SQLite fail, because pending writes would damage it."""
    if sqlite_files.is_index(each.name()):
        sqlite_files.replace_index(each)
        return
    nothing = os.open(f"/proc/self/fd/{each.fd}", os.O_PATH | os.O_CLOEXEC)
    os.dup2(nothing, each.fd, inheritable=False)
    os.close(nothing)


def _describe_counts(noted, is_branch):
    """Returns messages about eventfds, which a fork shares."""
    changed = [each.fd for each in noted if each.count is not None and (is_branch or _count_of(each.fd) != each.count)]
    return [f"eventfd {fd}: its count {_COUNT_STAYS if is_branch else 'is not restored'}" for fd in changed]


def find_shared_memory():
    """Returns the names of shared memory that this process can write to."""
    found = []
    for line in proc.read_maps():
        fields = line.split(None, 5)
        if fields[1][1:2] == b"w" and fields[1][3:4] == b"s":
            path = os.fsdecode(fields[5].strip()) if len(fields) > 5 else ""
            path = path.removesuffix(" (deleted)")
            if sqlite_files.is_index(path) and os.path.exists(path.removesuffix(sqlite_files.INDEX)):
                continue
            found.append("unnamed memory" if path in ("", "/dev/zero") else os.path.basename(path))
    return list(dict.fromkeys(found))


def _locks_of(fd):
    """Returns (kind, is exclusive, start, length) of this process's locks on a file. A length of 0 means to the end."""
    found = []
    for line in _info_of(fd):
        if line.startswith(b"lock:"):
            _, _, kind, _, way, *_, start, end = line.split()
            first = int(start)
            found.append((kind.decode(), way == b"WRITE", first, 0 if end == b"EOF" else int(end) - first + 1))
    return tuple(found)


def _count_of(fd):
    """Returns the count of an eventfd, None for another descriptor."""
    try:
        return next((line for line in _info_of(fd) if line.startswith(b"eventfd-count:")), None)
    except OSError:
        return None


def _info_of(fd):
    return proc.read(f"/proc/self/fdinfo/{fd}").splitlines()


def _base_name(each):
    return os.path.basename(each.name())
