"""The writable directories of a sandbox: putting files in, bringing files out, and leaving nothing behind.

Everything here runs while no process of a script lives, and still trusts no name: paths are walked by descriptor
without following links, nothing recurses, and every walk has a budget.
"""

import errno
import fcntl
import os
import stat
import struct
import time

from .explain import cut

MAX_FILES = 100
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 200_000
MAX_WALK_DEPTH = 64
MAX_WARNINGS, MAX_WARNING = 20, 500  # of them, and characters of one
CHUNK = 192 * 1024
SLICE_SEC = 0.02
_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS = 0x80086601, 0x40086602
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BadPath(ValueError):
    """A path that is not a plain relative one."""


def split_path(path):
    """The parts of a relative path. Raises BadPath for anything that could lead out of the workspace."""
    parts = path.split("/")
    if not path or "\0" in path or len(path) > 4096 or any(p in ("", ".", "..") for p in parts):
        raise BadPath("it is no plain path below the workspace")
    return parts


def put(root, path, mode, offset, content):
    """Writes a piece of a file; the first piece (offset 0) creates it, with its directories."""
    *directories, name = split_path(path)
    at = os.open(root, _DIRECTORY)
    try:
        for part in directories:
            try:
                os.mkdir(part, 0o755, dir_fd=at)
            except FileExistsError:
                pass
            deeper = os.open(part, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = deeper
        if offset > 0:  # the mode that was asked for may not let its owner write
            os.chmod(name, 0o600, dir_fd=at)
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_CREAT | os.O_TRUNC if offset == 0 else os.O_APPEND
        fd = os.open(name, flags, 0o600, dir_fd=at)
        try:
            os.fchmod(fd, mode)
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
    finally:
        os.close(at)


class Roots:
    """The writable roots, with the state in which they were found, so that it can be brought back."""

    def __init__(self, paths):
        # Kept open: they are mount points, which a script can neither remove nor replace, and finding them by name after
        # each run costs more than looking into them.
        self._roots = [os.open(path, _DIRECTORY) for path in paths]
        self._modes = {root: stat.S_IMODE(os.fstat(root).st_mode) for root in self._roots}
        for root in self._roots:
            os.utime(root, (0, 0))

    def wipe(self, budget_sec):
        """Empties every root. True when it is confirmed within the budget."""
        deadline = time.monotonic() + budget_sec
        return all([self._wipe_root(root, deadline) for root in self._roots])

    def close(self):
        """Gives back its descriptors; a broker needs them to its end."""
        for root in self._roots:
            os.close(root)

    def _wipe_root(self, root, deadline):
        try:
            found = os.fstat(root)
            if found.st_nlink == 0:
                return False
            if stat.S_IMODE(found.st_mode) != self._modes[root]:
                os.fchmod(root, self._modes[root])  # a script may have shut its owner out
            if not _is_empty(root) and not _empty(root, deadline):
                return False
            self._restore(root)
            return True
        except OSError:
            return False

    def _restore(self, root):
        """A root directory outlives its run: its times and extended attributes would carry data, as its mode would."""
        now = os.fstat(root)
        if now.st_mtime_ns != 0 or now.st_atime_ns != 0:
            os.utime(root, (0, 0))
        for name in _xattrs(root):
            os.removexattr(root, name)
        _clear_inode_flags(root)


def _xattrs(fd):
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS, errno.EPERM):
            return []
        raise


def _clear_inode_flags(fd):
    """Flags as chattr(1) sets them, where the file system has them."""
    try:
        flags = struct.unpack("=l", fcntl.ioctl(fd, _FS_IOC_GETFLAGS, bytes(8))[: struct.calcsize("=l")])[0]
        if flags:
            fcntl.ioctl(fd, _FS_IOC_SETFLAGS, struct.pack("=l", 0) + bytes(4))
    except OSError as error:
        if error.errno not in (errno.ENOTTY, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise


def _is_empty(fd):
    with os.scandir(fd) as entries:
        return next(entries, None) is None


def _empty(root, deadline):
    """Deletes everything below `root`. A directory's directories are moved up to the root first, so that depth costs
    neither recursion nor long paths."""
    moved = 0
    while True:
        progress = False
        with os.scandir(root) as listing:
            names = [(e.name, e.is_dir(follow_symlinks=False)) for e in _bounded(listing)]
        if not names:
            return True
        for name, is_directory in names:
            if time.monotonic() > deadline:
                return False
            progress = True
            if not is_directory:
                os.unlink(name, dir_fd=root)
                continue
            os.chmod(name, 0o700, dir_fd=root)
            inner = os.open(name, _DIRECTORY, dir_fd=root)
            try:
                while True:
                    with os.scandir(inner) as listing:
                        children = [(e.name, e.is_dir(follow_symlinks=False)) for e in _bounded(listing)]
                    if not children:
                        break
                    for child, child_is_directory in children:
                        if time.monotonic() > deadline:
                            return False
                        if child_is_directory:
                            moved += 1
                            # Moving a directory rewrites its "..", which needs write permission on it.
                            os.chmod(child, 0o700, dir_fd=inner)
                            os.rename(child, _free_name(root, moved), src_dir_fd=inner, dst_dir_fd=root)
                        else:
                            os.unlink(child, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=root)
        if not progress:
            return False


def _free_name(root, number):
    """A name below `root` that nothing has: a rename onto a full directory would fail."""
    while True:
        name = f".sandglass-wipe-{number}-{time.monotonic_ns()}"
        try:
            os.stat(name, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            return name
        number += 1


def _bounded(listing, most=4096):
    """A directory in slices: a million names at once would cost more memory than the sandbox has."""
    for _ in range(most):
        entry = next(listing, None)
        if entry is None:
            return
        yield entry


class Collection:
    """Regular files below the workspace that match, in the order of their paths, within the caps."""

    def __init__(self, root, patterns, budget_sec=5.0):
        self.limits_hit = []
        self.warnings = []
        self._root = root
        self._matcher = _Matcher(patterns)
        self._deadline = time.monotonic() + budget_sec

    def chunks(self):
        """Yields (path, size, offset, bytes); an empty file gives one empty chunk. None is a pause."""
        count = total = 0
        found_paths = []
        pause_at = time.monotonic() + SLICE_SEC
        for path in self._walk():
            if path is not None:
                found_paths.append(path)
            if time.monotonic() > pause_at:
                yield None
                pause_at = time.monotonic() + SLICE_SEC
        for path in sorted(found_paths):
            if self._is_over():
                return
            try:
                fd = self._open(path)
            except OSError as error:
                self._warn(f"{path}: {error.strerror}")
                continue
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    continue
                if found.st_size > MAX_FILE_BYTES:
                    self._hit("max_file_bytes")
                    self._warn(f"{path}: {found.st_size} bytes are over the {MAX_FILE_BYTES} of a collected file")
                    continue
                if count >= MAX_FILES:
                    self._hit("max_files")
                    return
                if total + found.st_size > MAX_TOTAL_BYTES:
                    self._hit("max_total_bytes")
                    continue
                count += 1
                total += found.st_size
                yield from self._read(fd, path, found.st_size)
            finally:
                os.close(fd)

    def _read(self, fd, path, size):
        offset = 0
        while True:
            piece = os.pread(fd, min(CHUNK, size - offset), offset) if size > offset else b""
            if not piece and offset > 0:
                return
            yield path, size, offset, piece
            offset += len(piece)
            if offset >= size:
                return

    def _open(self, path):
        *directories, name = path.split("/")
        at = os.open(self._root, _DIRECTORY)
        try:
            for part in directories:
                deeper = os.open(part, _DIRECTORY, dir_fd=at)
                os.close(at)
                at = deeper
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)

    def _walk(self):
        seen = 0
        todo = [""]
        while todo:
            base = todo.pop()
            try:
                fd = self._open(base) if base else os.open(self._root, _DIRECTORY)
            except OSError as error:
                self._warn(f"{base}: {error.strerror}")
                continue
            try:
                with os.scandir(fd) as listing:
                    for entry in listing:
                        seen += 1
                        if seen > MAX_ENTRIES:
                            self._hit("max_entries")
                            return
                        if seen % 256 == 0:
                            if self._is_over():
                                return
                            yield None
                        path = f"{base}/{entry.name}" if base else entry.name
                        if not _is_text(path):
                            shown = path.encode(errors="backslashreplace").decode()
                            self._warn(f"{shown}: the name is not UTF-8")
                        elif entry.is_dir(follow_symlinks=False):
                            if path.count("/") >= MAX_WALK_DEPTH:
                                self._hit("max_entries")
                            elif self._matcher.may_hold(path):
                                todo.append(path)
                        elif entry.is_file(follow_symlinks=False) and self._matcher.matches(path):
                            yield path
            finally:
                os.close(fd)

    def stop(self):
        """Nothing more is wanted."""
        self._deadline = 0

    def _is_over(self):
        """Whether the time for collecting has run out."""
        if time.monotonic() <= self._deadline:
            return False
        self._hit("max_time")
        return True

    def _hit(self, name):
        if name not in self.limits_hit:
            self.limits_hit.append(name)

    def _warn(self, message):
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append({"code": "collect_skipped", "message": cut(message, MAX_WARNING)})


def _is_text(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Matcher:
    """Globs over whole paths: `**` is any number of parts, the rest matches within one part."""

    def __init__(self, patterns):
        import fnmatch
        import re

        def compiled(pattern):
            parts = pattern.strip("/").split("/")
            # At the end, `**` needs a name to match: `out/**` is what lies below out, not out itself.
            parts += ["*"] if parts[-1] == "**" else []
            return [part if part == "**" else re.compile(fnmatch.translate(part)) for part in parts]

        self._patterns = [compiled(pattern) for pattern in patterns]

    def matches(self, path):
        """Whether a file of this path is asked for."""
        return any(len(pattern) in _closure(pattern, states) for pattern, states in self._after(path))

    def may_hold(self, directory):
        """Whether a pattern can match something below a directory, so that it is worth a visit."""
        return any(any(state < len(pattern) for state in states) for pattern, states in self._after(directory))

    def _after(self, path):
        """Each pattern with the places in it that are reached when the whole path is read."""
        for pattern in self._patterns:
            states = {0}
            for part in path.split("/"):
                states = _step(pattern, states, part)
            yield pattern, states


def _step(pattern, states, part):
    """The places in a pattern that can be reached by reading one part of a path."""
    result = set()
    for state in _closure(pattern, states):
        if state >= len(pattern):
            continue
        if pattern[state] == "**":
            result.add(state)
        elif pattern[state].match(part):
            result.add(state + 1)
    return result


def _closure(pattern, states):
    """`**` may stand for no part at all."""
    result = set(states)
    for state in states:
        while state < len(pattern) and pattern[state] == "**":
            state += 1
            result.add(state)
    return result
