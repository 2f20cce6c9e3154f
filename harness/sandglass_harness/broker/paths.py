"""Opens paths of a workspace while scripts rename, relink and delete what they name.

Every component is opened by descriptor and never through a link. For reading, this module itself resolves links that stay in
the workspace. For writing, it follows none.
"""

import errno
import json
import os
import stat

from ..text import cut
from .scratch import BadPath, is_utf8, open_real_directory, split_path

TEMPORARY = ".sandglass-"  # the prefix of files that are being written; they are neither listed nor read
# A FIFO or a file under a lease must not block, and a terminal must not become the broker's own.
READABLE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
MAX_SHOWN = 400  # characters of a path in a message
MAX_LINKS = 40
MAX_OPENS = 4096  # for one path: links can require 80,000, which would block the broker's loop for too long

_CODES = {
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_a_directory",
    errno.EISDIR: "not_a_file",
    errno.ENXIO: "not_a_file",
    errno.ELOOP: "outside",
    errno.EXDEV: "outside",
    errno.EEXIST: "exists",
    errno.ENOTEMPTY: "not_empty",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "too_large",
    errno.EINVAL: "invalid",
    errno.ENAMETOOLONG: "invalid",
}


class FileError(Exception):
    """A failed file operation, with an error code of the wire."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def format_path(path):
    """Formats a path for a message, as JSON.

    A path may contain a secret. The host redacts the plain text and its JSON form, but not the repr that the text of an
    OSError has.
    """
    return cut(json.dumps(path, ensure_ascii=False), MAX_SHOWN)


def problem(code, path, reason):
    """Creates the FileError for a path."""
    return FileError(code, f"{format_path(path)}: {reason}")


def as_file_error(error, path):
    """Converts an OSError to a FileError; returns a FileError unchanged."""
    if isinstance(error, FileError):
        return error
    return problem(_CODES.get(error.errno, "io"), path, error.strerror or "it cannot be used")


def plain_parts(path):
    """Returns the components of a path. Raises FileError for one that is not a plain relative one."""
    if not is_utf8(path):
        raise problem("invalid", path, "it is not UTF-8")
    try:
        return split_path(path)
    except BadPath as error:
        leaves = path.startswith("/") or ".." in path.split("/")
        raise problem("outside" if leaves else "invalid", path, error) from None


def is_link(name, directory):
    """True if a name is currently a link."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_directory(root, path, parts, mode=None):
    """Opens a directory to write into, and follows no link. With a `mode`, creates it and its parents if they are missing."""
    at = open_real_directory(root)
    try:
        for position, part in enumerate(parts):
            deeper = _enter(part, at, path)
            if deeper is None and mode is None:
                raise problem("not_found", path, os.strerror(errno.ENOENT))
            if deeper is None:
                deeper = _make(part, at, path, mode if position == len(parts) - 1 else 0o755)
            os.close(at)
            at = deeper
        return at
    except BaseException as error:
        os.close(at)
        raise as_file_error(error, path) if isinstance(error, OSError) else error


def _enter(name, directory, path):
    """Opens a directory below another one. Returns None if it does not exist."""
    try:
        return open_real_directory(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and is_link(name, directory):
            raise problem("outside", path, "a part of the path is a link") from None
        raise


def _make(name, directory, path, mode):
    try:
        os.mkdir(name, 0o700, dir_fd=directory)
    except FileExistsError:  # a script has created it meanwhile
        created = False
    else:
        created = True
    fd = _enter(name, directory, path)
    if fd is None:
        raise problem("not_found", path, "its directory was deleted")
    if created:
        try:
            os.fchmod(fd, mode)  # mkdir applies the umask
        except BaseException:
            os.close(fd)
            raise
    return fd


def open_to_read(root, path):
    """Opens a regular file or a directory, through links that stay in the workspace. Returns its descriptor and its status."""
    at, name = find(root, path, follow=True)
    if name is None:
        return at, os.fstat(at)
    try:
        # Even a non-blocking open can affect a device or the writer of a FIFO.
        _check_kind(os.stat(name, dir_fd=at, follow_symlinks=False), path)
        fd = os.open(name, READABLE, dir_fd=at)
    except OSError as error:
        raise as_file_error(error, path) from None
    finally:
        os.close(at)
    try:
        found = os.fstat(fd)
        _check_kind(found, path)
        return fd, found
    except BaseException:
        os.close(fd)
        raise


def _check_kind(found, path):
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise problem("not_a_file", path, "it is neither a regular file nor a directory")


def find(root, path, follow):
    """Returns the descriptor of the parent directory of a path and the name in it, or the descriptor of the path itself and None.

    Links before the last component are followed if they stay in the workspace; a link at the end only with `follow`.
    """
    search = _Search(root, path)
    try:
        return search.run([] if path in ("", ".") else plain_parts(path), follow)
    except BaseException as error:
        os.close(search.at)
        raise as_file_error(error, path) if isinstance(error, OSError) else error


class _Search:
    """Walks one path. It keeps one descriptor and the names above it, because a `..` in a link restarts from the root."""

    def __init__(self, root, path):
        self._root, self._path = root.rstrip("/"), path
        self._names = []
        self._opens = self._links = 0
        try:
            self.at = open_real_directory(root)
        except OSError as error:
            raise as_file_error(error, path) from None

    def run(self, parts, follow):
        left = parts[::-1]
        while left:
            part = left.pop()
            if part == "..":
                self._go_up()
            elif part.startswith(TEMPORARY):
                raise problem("not_found", self._path, os.strerror(errno.ENOENT))
            elif left:
                if not self._go_down(part):
                    left += self._parts_of_link(part)
            elif follow and is_link(part, self.at):
                left += self._parts_of_link(part)
            else:
                return self.at, part
        return self.at, None

    def _go_down(self, name):
        """Enters a directory. Returns False if it is a link."""
        self._count()
        try:
            self._move_to(open_real_directory(name, dir_fd=self.at))
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and is_link(name, self.at):
                return False
            raise
        self._names.append(name)
        return True

    def _go_up(self):
        if not self._names:
            raise problem("outside", self._path, "it leads out of the workspace")
        names = self._names[:-1]
        self._go_to_root()
        for name in names:
            if not self._go_down(name):
                raise problem("not_a_directory", self._path, "a link took the place of a directory")

    def _go_to_root(self):
        self._count()
        self._move_to(open_real_directory(self._root or "/"))
        self._names = []

    def _move_to(self, fd):
        os.close(self.at)
        self.at = fd

    def _parts_of_link(self, name):
        """Returns the components of a link's target, the last one first; the name itself if it is no longer a link."""
        self._links += 1
        if self._links > MAX_LINKS:
            raise problem("outside", self._path, f"it goes through more than {MAX_LINKS} links")
        try:
            target = os.readlink(name, dir_fd=self.at)
        except OSError as error:
            if error.errno == errno.EINVAL:  # a script has replaced the link
                return [name]
            raise
        if target.startswith("/"):
            if not f"{target}/".startswith(f"{self._root}/"):
                raise problem("outside", self._path, "a link leads out of the workspace")
            target = target[len(self._root) :]
            self._go_to_root()
        return [part for part in target.split("/")[::-1] if part not in ("", ".")]

    def _count(self):
        self._opens += 1
        if self._opens > MAX_OPENS:
            raise problem("invalid", self._path, f"it goes through more than {MAX_OPENS} directories")
