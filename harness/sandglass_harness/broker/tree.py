"""Walks and deletes directory trees of a workspace in small steps, however deep and wide scripts make them."""

import errno
import heapq
import os
import stat
import time

from ..caps import MAX_ENTRIES
from .collection import SLICE_SEC
from .paths import READABLE, TEMPORARY
from .scratch import open_real_directory

MAX_PATH = 4096  # characters
STEP = 256  # names between two pauses
SORTED_AT_ONCE = 8192  # names; sorting them takes a few ms
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # a script has deleted or replaced the entry


class Slice:
    """A time slice: how long a generator may work before it yields to the broker's loop."""

    def __init__(self):
        self.restart()

    def restart(self):
        """Begins a new slice."""
        self._end = time.monotonic() + SLICE_SEC

    def is_over(self):
        """True if the time is used up."""
        return time.monotonic() > self._end


class Walk:
    """Walks everything below a directory in order, with at most three descriptors.

    Siblings are in the order of their names; with `by_path`, all paths together are in order. Names are held in memory for
    sorting, up to a limit; `is_cut` is True once the limit is reached.
    """

    def __init__(self, top, by_path=False):
        self.is_cut = False
        self.unreadable = None  # the path of a directory that could not be read
        self.unreadable_count = 0
        self._top = top  # owned by the caller
        self._by_path = by_path
        self._held = 0
        self._fd = None  # the directory of the current level

    def steps(self, enters):
        """Yields (path, name, descriptor of its directory, status), or None as a point to pause.

        It enters the directories for whose path `enters` returns True. The descriptor is valid until the next step.
        """
        self._fd = os.dup(self._top)
        levels = []
        try:
            levels.append(("", *(yield from self._sorted_names())))
            while levels:
                base, names, count = levels[-1]
                key = next(names, None)
                if key is None or not self._is_at(base):
                    levels.pop()
                    self._held -= count
                    self._leave()
                    yield None
                    continue
                name = key.rstrip("/")
                path = f"{base}/{name}" if base else name
                if len(path) > MAX_PATH:
                    self.is_cut = True
                    continue
                try:
                    found = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
                except OSError as error:
                    self._note(error, path)
                    continue
                yield path, name, self._fd, found
                if stat.S_ISDIR(found.st_mode) and enters(path) and self._enter(name, path):
                    levels.append((path, *(yield from self._sorted_names())))
        finally:
            self._leave()

    def _enter(self, name, path):
        try:
            deeper = open_real_directory(name, dir_fd=self._fd)
        except OSError as error:
            self._note(error, path)
            return False
        self._leave()
        self._fd = deeper
        return True

    def _is_at(self, base):
        """Reopens the directory of a level after a deeper one was walked. Returns False if it is gone."""
        if self._fd is not None:
            return True
        self._fd = os.dup(self._top)
        return all(self._enter(part, base) for part in base.split("/") if part)

    def _leave(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _note(self, error, path):
        """Ignores entries that are gone, counts unreadable ones, and raises other errors."""
        if error.errno in _GONE:
            return
        if error.errno != errno.EACCES:
            raise error
        self.unreadable_count += 1
        self.unreadable = self.unreadable or path

    def _sorted_names(self):
        """Returns the names of the current directory and their number. They are sorted in parts and merged while they are used,
        because one sort of 200,000 names takes 100 ms."""
        runs, before = [[]], self._held
        with os.scandir(self._fd) as listing:
            for count, entry in enumerate(listing, 1):
                if count % STEP == 0:
                    yield None
                if entry.name.startswith(TEMPORARY):
                    continue
                if self._held >= MAX_ENTRIES:
                    self.is_cut = True
                    break
                self._held += 1
                # A trailing slash sorts the name of a directory like the paths below it.
                is_slashed = self._by_path and entry.is_dir(follow_symlinks=False)
                runs[-1].append(f"{entry.name}/" if is_slashed else entry.name)
                if len(runs[-1]) == SORTED_AT_ONCE:
                    runs[-1].sort()
                    runs.append([])
                    yield None
        runs[-1].sort()
        return iter(runs[0]) if len(runs) == 1 else heapq.merge(*runs), self._held - before


def delete_below(top):
    """Deletes everything below a directory. Yields None as a point to pause.

    Nested directories are moved up to the top first, so that depth needs neither descriptors nor recursion.
    """
    moved = _MovedNames()
    while True:
        found = _first_names(top)
        if not found:
            return
        for name, is_directory in found:
            if is_directory:
                yield from _delete_directory(name, top, moved)
            else:
                _try(os.unlink, name, dir_fd=top)
            yield None


def _delete_directory(name, top, moved):
    fd = open_to_delete(name, top)
    if fd is None:
        return
    try:
        while True:
            found = _first_names(fd)
            if not found:
                break
            for child, is_directory in found:
                if not is_directory:
                    _try(os.unlink, child, dir_fd=fd)
                else:
                    inner = open_to_delete(child, fd)  # a move rewrites "..", which needs write permission
                    if inner is not None:
                        os.close(inner)
                        _try(os.rename, child, moved.next(), src_dir_fd=fd, dst_dir_fd=top)
                yield None
    finally:
        os.close(fd)
    _try(os.rmdir, name, dir_fd=top)


class _MovedNames:
    """Names for directories that are being deleted. They lack the prefix TEMPORARY, so that they are listed after a cancelled
    deletion."""

    def __init__(self):
        self._stem = f".removing-{os.urandom(8).hex()}"
        self._count = 0

    def next(self):
        """Returns an unused name."""
        self._count += 1
        return f"{self._stem}-{self._count}"


def _try(call, *args, **options):
    """Makes a call that may fail because a script has changed the entry. The next listing shows the new state."""
    try:
        call(*args, **options)
    except OSError as error:
        if error.errno not in (*_GONE, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise


def _first_names(fd):
    with os.scandir(fd) as listing:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry, _ in zip(listing, range(STEP))]


def open_to_delete(name, directory):
    """Opens a directory and gives its owner all permissions, so that it can be emptied. Returns None if it is gone."""
    try:
        try:
            fd = open_real_directory(name, dir_fd=directory)
        except PermissionError:
            _unlock(name, directory)
            fd = open_real_directory(name, dir_fd=directory)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    try:
        if stat.S_IMODE(os.fstat(fd).st_mode) & 0o700 != 0o700:
            os.fchmod(fd, 0o700)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _unlock(name, directory):
    """Gives the owner all permissions on a directory. By its descriptor, because chmod by name would follow a link that replaced
    it."""
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def open_file(name, directory, found):
    """Opens a regular file that a walk found for reading. Returns None if it is gone or no longer a regular file."""
    if not stat.S_ISREG(found.st_mode):
        return None
    try:
        fd = os.open(name, READABLE, dir_fd=directory)
    except OSError as error:
        if error.errno in (*_GONE, errno.ENXIO):
            return None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None
