"""The file operations of a workspace, except the transfer of contents (`pack`).

Long ones are generators: they yield None after each 20 ms of work, so that the broker's loop continues, and they return the
result. They raise FileError at any step, and hold no descriptor after `close()`.
"""

import errno
import hashlib
import os
import stat
import time

from ..caps import MAX_ENTRIES, MAX_SAFE_INTEGER
from .globs import Matcher
from .paths import FileError, as_file_error, find, open_directory, open_to_read, plain_parts, problem
from .scratch import is_utf8
from .tree import MAX_PATH, Slice, Walk, delete_below, open_file, open_to_delete

ENTRIES_AT_ONCE = 200
CHARACTERS_AT_ONCE = 128 << 10  # of paths and targets, so that 200 long ones do not make a frame of megabytes
READ_BYTES = 256 << 10
# A file that changes twice within one tick of the kernel's clock has the same timestamps after both changes.
UNSETTLED_NS = 20_000_000
DELETION_ROUNDS = 10  # because scripts can add files while a directory is deleted


class Files:
    """Describes, creates and removes the entries of a workspace. The path `""` or `"."` is the workspace itself."""

    def __init__(self, root):
        self._root = root

    def stat(self, path):
        """Returns the entry of a path. A link is described, not followed."""
        at, name = find(self._root, path, follow=False)
        try:
            found = os.fstat(at) if name is None else os.stat(name, dir_fd=at, follow_symlinks=False)
            return _entry(path, found, name, at)
        except OSError as error:
            raise as_file_error(error, path) from None
        finally:
            os.close(at)

    def make(self, path, mode):
        """Creates a directory and its parents. An existing directory is left unchanged."""
        try:
            os.close(open_directory(self._root, path, plain_parts(path), mode))
        except FileError as error:
            raise problem("exists", path, "it exists") if self._is_other_kind(path, error) else error from None

    def remove(self, path, recursive):
        """Removes a file, a link or a directory. Yields None; returns None."""
        *parents, name = plain_parts(path)
        at = open_directory(self._root, path, parents)
        try:
            if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=at)
            elif recursive:
                yield from self._remove_directory(path, name, at)
            else:
                os.rmdir(name, dir_fd=at)
        except OSError as error:
            raise as_file_error(error, path) from None
        finally:
            os.close(at)

    def list(self, path, patterns, max_entries, hidden, follow=False):
        """Yields lists of entries below a directory, and None. Returns {"skipped", "limits_hit"}.

        With `follow`, a link to a regular file in the workspace is listed as that file.

        `skipped` counts names that are not UTF-8 and directories that cannot be read. `limits_hit` holds "max_entries" if the
        list is incomplete.
        """
        matcher = None if patterns is None else Matcher(patterns, hidden)
        top = self._open_top(path)
        walk = _Listing(top, matcher, hidden, (self._root, path) if follow else None)
        slice_, entries, characters, count = Slice(), [], 0, 0
        try:
            for step in walk.steps():
                if step is not None:
                    if count == max_entries:
                        walk.is_cut = True
                        break
                    count += 1
                    entries.append(step)
                    characters += len(step["path"]) + len(step.get("target", ""))
                if len(entries) == ENTRIES_AT_ONCE or characters > CHARACTERS_AT_ONCE:
                    yield entries
                    entries, characters = [], 0
                    slice_.restart()
                elif slice_.is_over():
                    yield None
                    slice_.restart()
            if entries:
                yield entries
        except OSError as error:
            raise as_file_error(error, path) from None
        finally:
            os.close(top)
        return {"skipped": walk.skipped, "limits_hit": ["max_entries"] if walk.is_cut else []}

    def digest(self, path):
        """Computes the digest of a file or a directory. Yields None; returns {"sha256", "files", "bytes"}.

        The digest of a file is the SHA-256 of its content. The digest of a directory is the SHA-256 over `file\\0PATH\\0HEX\\0` or
        `link\\0PATH\\0HEX\\0` for each file and each link below it, in the order of their paths; HEX is the SHA-256 of the
        content, or of the link's target as text. Modes, times, empty directories and special files are ignored.
        """
        fd, found = open_to_read(self._root, path)
        digest = _Digest()
        try:
            if stat.S_ISREG(found.st_mode):
                sha256 = yield from digest.of_file(fd)
            else:
                sha256 = yield from digest.of_directory(fd, path)
        except OSError as error:
            raise as_file_error(error, path) from None
        finally:
            os.close(fd)
        return {"sha256": sha256, "files": digest.files, "bytes": digest.bytes}

    def _open_top(self, path):
        fd, found = open_to_read(self._root, path)
        if stat.S_ISDIR(found.st_mode):
            return fd
        os.close(fd)
        raise problem("not_a_directory", path, "it is a file")

    def _is_other_kind(self, path, error):
        if error.code != "not_a_directory":
            return False
        try:
            return self.stat(path)["kind"] != "directory"
        except FileError:
            return False

    def _remove_directory(self, path, name, at):
        slice_ = Slice()
        for _ in range(DELETION_ROUNDS):
            fd = open_to_delete(name, at)
            if fd is None:
                return
            try:
                for _ in delete_below(fd):
                    if slice_.is_over():
                        yield None
                        slice_.restart()
            finally:
                os.close(fd)
            try:
                os.rmdir(name, dir_fd=at)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        raise problem("not_empty", path, "other processes create files in it while it is removed; end them and try again")


class _Listing:
    """Lists the entries below a directory, one by one."""

    def __init__(self, top, matcher, hidden, follows):
        self.is_cut = False
        self._follows = follows  # the root and the path below it, if links are followed
        self._skipped = 0
        self._walk = Walk(top)
        self._matcher = matcher
        self._hidden = hidden

    @property
    def skipped(self):
        """The number of names that could not be listed and of directories that could not be read."""
        return self._skipped + self._walk.unreadable_count

    def steps(self):
        """Yields an entry, or None as a point to pause."""
        for step in self._walk.steps(self._enters):
            self.is_cut = self._walk.is_cut
            if step is None:
                yield None
                continue
            path, name, directory, found = step
            if not is_utf8(name):
                self._skipped += 1
                yield None
            elif self._wants(path, name):
                yield self._entry(path, found, name, directory)
            else:
                yield None

    def _enters(self, path):
        name = path.rpartition("/")[2]
        if not is_utf8(name):
            return False
        return self._is_seen(name) if self._matcher is None else self._matcher.can_match_below(path)

    def _entry(self, path, found, name, directory):
        entry = _entry(path, found, name, directory)
        if self._follows is not None and entry["kind"] == "link":
            root, top = self._follows
            try:
                fd, target = open_to_read(root, f"{top}/{path}" if top not in ("", ".") else path)
            except FileError:  # it leads outside the workspace, or is dangling
                return entry
            os.close(fd)
            if stat.S_ISREG(target.st_mode):
                return _entry(path, target, name, directory)
        return entry

    def _wants(self, path, name):
        return self._is_seen(name) if self._matcher is None else self._matcher.matches(path)

    def _is_seen(self, name):
        return self._hidden or not name.startswith(".")


class _Digest:
    """Hashes files, and counts them and their bytes."""

    def __init__(self):
        self.files = self.bytes = 0
        self._slice = Slice()

    def of_file(self, fd):
        """Returns the digest of a file. Ignores bytes that are appended meanwhile: a script could append without end."""
        self.files += 1
        hashed = hashlib.sha256()
        left = os.fstat(fd).st_size
        while left > 0:
            piece = os.read(fd, min(READ_BYTES, left))
            if not piece:
                break
            hashed.update(piece)
            left -= len(piece)
            self.bytes += len(piece)
            yield from self._pause()
        return hashed.hexdigest()

    def of_directory(self, top, path):
        """Returns the digest of a directory."""
        hashed = hashlib.sha256()
        walk = Walk(top, by_path=True)
        for step in walk.steps(lambda _: True):
            yield from self._pause()
            if step is None:
                continue
            below, name, directory, found = step
            if stat.S_ISLNK(found.st_mode):
                kind, content = "link", hashlib.sha256(_target(name, directory)).hexdigest()
            else:
                fd = open_file(name, directory, found)
                if fd is None:
                    continue
                try:
                    kind, content = "file", (yield from self.of_file(fd))
                finally:
                    os.close(fd)
            hashed.update(f"{kind}\0{below}\0{content}\0".encode(errors="surrogateescape"))
        if walk.unreadable is not None:
            raise problem("io", walk.unreadable, os.strerror(errno.EACCES))
        if walk.is_cut:
            raise problem("too_many", path, f"it has more than {MAX_ENTRIES} entries, or a path of more than {MAX_PATH} characters")
        return hashed.hexdigest()

    def _pause(self):
        if self._slice.is_over():
            yield None
            self._slice.restart()


def _entry(path, found, name, directory):
    """Returns the entry of a path. Scripts choose sizes and times, so they are clamped to the integers of the wire.

    Scripts cannot set the time in "version". It differs after every change of a file, except through a shared memory mapping.
    """
    kind = kind_of(found.st_mode)
    entry = {
        "path": path,
        "kind": kind,
        "size": min(found.st_size, MAX_SAFE_INTEGER) if kind in ("file", "link") else 0,
        "mode": stat.S_IMODE(found.st_mode),
        "mtime_ms": mtime_ms(found),
    }
    if kind == "link":
        entry["target"] = _target(name, directory).decode(errors="replace")
    elif kind == "file" and time.time_ns() - found.st_ctime_ns > UNSETTLED_NS:
        entry["version"] = f"{found.st_ino:x}-{found.st_ctime_ns:x}"
    return entry


def kind_of(mode):
    """Returns the kind of a file by its mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def mtime_ms(found):
    """Returns the modification time in milliseconds."""
    return max(-MAX_SAFE_INTEGER, min(found.st_mtime_ns // 1_000_000, MAX_SAFE_INTEGER))


def _target(name, directory):
    """Returns the target of a link as bytes; empty if the link is gone."""
    try:
        return os.fsencode(os.readlink(name, dir_fd=directory))
    except OSError:
        return b""
