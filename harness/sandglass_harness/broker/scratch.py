"""The writable directories of a sandbox: puts files in, and wipes everything.

This code runs when no process of a script is left, and still trusts no file name: it walks paths by descriptor, follows no
links, does not recurse, and limits the time of every walk.
"""

import errno
import fcntl
import os
import stat
import struct
import time

_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS = 0x80086601, 0x40086602
_CLOCK_REALTIME_COARSE = 5  # the clock of time stamps, which moves with the kernel's timer
_SEC_NS = 1_000_000_000
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _follows_links():
    """True on gVisor, which follows a link to a directory in spite of O_NOFOLLOW. Probes with a link of /proc."""
    try:
        os.close(os.open("/proc/self/cwd", DIRECTORY))
    except OSError as error:
        return error.errno not in (errno.ENOTDIR, errno.ELOOP)
    return True


FOLLOWS_LINKS = _follows_links()


def open_real_directory(name, dir_fd=None):
    """Opens a directory. Raises NotADirectoryError for a link, even one to a directory."""
    fd = os.open(name, DIRECTORY, dir_fd=dir_fd)
    if not FOLLOWS_LINKS:
        return fd
    try:
        # Compared after opening: a script that replaces the name meanwhile cannot move a directory from outside the workspace
        # there.
        if os.path.samestat(os.stat(name, dir_fd=dir_fd, follow_symlinks=False), os.fstat(fd)):
            return fd
    except OSError:
        pass
    os.close(fd)
    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)


class BadPath(ValueError):
    """A path that is not a plain relative path."""


def split_path(path):
    """Splits a relative path. Raises BadPath for a path that could lead out of the workspace."""
    parts = path.split("/")
    if not path or "\0" in path or len(path) > 4096 or any(p in ("", ".", "..") for p in parts):
        raise BadPath("it is not a plain path below the workspace")
    return parts


def is_utf8(name):
    """True if a name can be sent to the host, which rejects surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def put(root, path, mode, offset, content):
    """Writes a chunk of a file. The first chunk (offset 0) creates the file and its directories."""
    *directories, name = split_path(path)
    at = open_real_directory(root)
    try:
        for part in directories:
            try:
                os.mkdir(part, 0o755, dir_fd=at)
            except FileExistsError:
                pass
            deeper = open_real_directory(part, dir_fd=at)
            os.close(at)
            at = deeper
        if offset > 0:  # the requested mode may not let its owner write
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
    """The writable root directories, and the state to restore them to.

    A root that nobody has touched since it was last found clean is not read again. Linux shows that by its status: every change of
    its entries, attributes or flags sets the time of change. gVisor does not set it for attributes, so `shows_changes` is False there.
    """

    shows_changes = False  # until the kernel is known

    def __init__(self, paths):
        # Kept open, because a lookup by name after each run costs more than the check itself. They are mount points, which a
        # script can neither remove nor replace.
        self._roots = [_open_root(path) for path in paths]
        self._clean = dict.fromkeys(self._roots)  # the status of each when it was clean; None if it cannot show the next change
        self._modes = {root: stat.S_IMODE(os.fstat(root).st_mode) for root in self._roots}
        # The volumes of a pod belong to root. Nobody in the sandbox can change their modes, or set their times but to now.
        self._foreign = {root for root in self._roots if os.fstat(root).st_uid != os.geteuid()}
        self._changed = {}  # the time of change that the broker gave each root
        for root in self._roots:
            self._set_times(root)

    def wipe(self, budget_sec):
        """Empties every root. Returns False if that fails or takes longer than the budget."""
        deadline = time.monotonic() + budget_sec
        return all([self._wipe_root(root, deadline) for root in self._roots])

    def close(self):
        """Closes the descriptors. For tests: a broker needs them until it ends."""
        for root in self._roots:
            os.close(root)

    def _wipe_root(self, root, deadline):
        try:
            found = os.fstat(root)
            if self._clean[root] == _status_of(found):
                return True
            self._clean[root] = None
            if found.st_nlink == 0:
                return False
            if stat.S_IMODE(found.st_mode) != self._modes[root]:
                os.fchmod(root, self._modes[root])  # a script may have removed its owner's permissions
            if not _is_empty(root) and not _delete_all(root, deadline):
                return False
            self._restore(root)
            self._note_clean(root)
            return True
        except OSError:
            return False

    def _note_clean(self, root):
        """Notes the status, unless a change could still get the time of the last one. A file system that counts seconds is never
        noted."""
        found = os.fstat(root)
        changed = found.st_ctime_ns
        if self.shows_changes and changed % _SEC_NS and changed < time.clock_gettime_ns(_CLOCK_REALTIME_COARSE):
            self._clean[root] = _status_of(found)

    def _restore(self, root):
        """Restores extended attributes, flags and times of a root directory, which could carry data from run to run. The times come
        last: a script can choose the time of change by when it changes the root, so the broker gives it another one."""
        for name in _xattrs(root):
            os.removexattr(root, name)
        _clear_inode_flags(root)
        now = os.fstat(root)
        is_changed = now.st_mtime_ns != 0 or now.st_atime_ns != 0 or now.st_ctime_ns != self._changed[root]
        if root in self._foreign or is_changed:
            self._set_times(root)

    def _set_times(self, root):
        os.utime(root, None if root in self._foreign else (0, 0))
        self._changed[root] = os.fstat(root).st_ctime_ns


class Terminals:
    """The file system of terminals, /dev/pts.

    Scripts cannot create or delete names in it. But a terminal outlives its run while its last descriptor is in the queue of a
    socket that the kernel has not freed yet. If a script owns the file system, as on the local engine, the modes and times of
    its directory and of ptmx outlive the run as well.
    """

    def __init__(self, path="/dev/pts"):
        self._directory, self._is_own = _open_terminals(path)
        if self._directory is None:
            return
        self._names = sorted(os.listdir(self._directory))
        if self._is_own:
            try:
                self._set_times()
            except OSError:  # scripts cannot set modes and times on this file system either
                self._is_own = False
                return
            self._normal, self._changed = self._read_state(), self._read_change_times()

    def restore(self, budget_sec):
        """Waits until no terminal is left, and restores modes and times. Returns False if that takes longer than the budget."""
        if self._directory is None:
            return True
        deadline = time.monotonic() + budget_sec
        try:
            if self._is_own:
                mode = self._normal[0][0]
                if stat.S_IMODE(os.fstat(self._directory).st_mode) != mode:
                    os.fchmod(self._directory, mode)  # first, because a script may have removed its owner's permissions
            while sorted(os.listdir(self._directory)) != self._names:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.001)
            if not self._is_own:
                return True
            if self._read_state() == self._normal and self._read_change_times() == self._changed:
                return True
            self._reset()
            self._changed = self._read_change_times()
            return self._read_state() == self._normal
        except OSError:
            return False

    def close(self):
        """Closes the descriptor."""
        if self._directory is not None:
            os.close(self._directory)

    def _read_state(self):
        """Returns the modes, owners and times of the directory and of each node in it, which can carry data."""
        return [
            (stat.S_IMODE(node.st_mode), node.st_uid, node.st_gid, node.st_atime_ns, node.st_mtime_ns)
            for node in self._nodes()
        ]

    def _read_change_times(self):
        """Returns the ctime of each. A script can choose it by the time at which it changes a node, so it can carry data; the
        broker then changes it again."""
        return [node.st_ctime_ns for node in self._nodes()]

    def _nodes(self):
        nodes = [os.stat(name, dir_fd=self._directory, follow_symlinks=False) for name in self._names]
        return [os.fstat(self._directory), *nodes]

    def _reset(self):
        for name, (mode, *_) in zip(self._names, self._normal[1:]):
            os.chmod(name, mode, dir_fd=self._directory)
        self._set_times()

    def _set_times(self):
        os.utime(self._directory, (0, 0))
        for name in self._names:
            os.utime(name, (0, 0), dir_fd=self._directory, follow_symlinks=False)


def _open_terminals(path):
    """Returns a descriptor of the directory, or None, and whether this process owns it. The descriptor of an owned directory
    has O_NOATIME, so that listing does not change its times."""
    for flag in (os.O_NOATIME, 0):  # only owners may set O_NOATIME
        try:
            fd = os.open(path, DIRECTORY | flag)
        except OSError:
            continue
        return fd, flag != 0 and os.fstat(fd).st_uid == os.geteuid()
    return None, False


def _open_root(path):
    """Opens a root so that listing it does not change its times, if this process owns it."""
    fd = open_real_directory(path)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NOATIME)
    except OSError:  # only owners may set O_NOATIME
        pass
    return fd


def _status_of(found):
    times = found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns
    return found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_size, *times


def _xattrs(fd):
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS, errno.EPERM):
            return []
        raise


def _clear_inode_flags(fd):
    """Clears the flags of chattr(1), if the file system supports them."""
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


def _delete_all(root, deadline):
    """Deletes everything below `root`. Moves nested directories up to the root first, so that depth needs neither recursion
    nor long paths."""
    moved = 0
    while True:
        progress = False
        with os.scandir(root) as listing:
            names = [(e.name, e.is_dir(follow_symlinks=False)) for e in _first_entries(listing)]
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
            inner = open_real_directory(name, dir_fd=root)
            try:
                while True:
                    with os.scandir(inner) as listing:
                        children = [(e.name, e.is_dir(follow_symlinks=False)) for e in _first_entries(listing)]
                    if not children:
                        break
                    for child, child_is_directory in children:
                        if time.monotonic() > deadline:
                            return False
                        if child_is_directory:
                            moved += 1
                            # Moving a directory rewrites its "..", which needs write permission on it.
                            os.chmod(child, 0o700, dir_fd=inner)
                            os.rename(child, _unused_name(root, moved), src_dir_fd=inner, dst_dir_fd=root)
                        else:
                            os.unlink(child, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=root)
        if not progress:
            return False


def _unused_name(root, number):
    """Returns an unused name in `root`, because a rename onto a non-empty directory would fail."""
    while True:
        name = f".sandglass-wipe-{number}-{time.monotonic_ns()}"
        try:
            os.stat(name, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            return name
        number += 1


def _first_entries(listing, limit=4096):
    """Yields the first entries of a directory. A million names at once could need more memory than the sandbox has."""
    for _ in range(limit):
        entry = next(listing, None)
        if entry is None:
            return
        yield entry
