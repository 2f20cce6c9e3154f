"""Packs: many files as one byte stream, into a workspace and out of it.

Entry: length of the header (4 bytes, big-endian), header (JSON), then chunks: length (4 bytes), bytes. A chunk of length 0 ends
the entry. In a pack that leaves the workspace, BROKEN ends an entry whose file could not be read to its end.
"""

import os
import stat

from ..caps import MAX_SAFE_INTEGER
from ..wire import decode, encode
from .files import mtime_ms
from .paths import TEMPORARY, FileError, as_file_error, open_directory, open_to_read, plain_parts, problem
from .tree import Slice

MAX_HEADER_BYTES = 16 << 10
MAX_CHUNK_BYTES = 1 << 20
PIECE_BYTES = 64 << 10
SMALLEST_READ_BYTES = 4096
BROKEN = b"\xff\xff\xff\xff"
DEFAULT_MODE = 0o644
MAX_LONG_PATH = 1000  # characters of a path that is too long for a header


class PackWriter:
    """Writes the files of a pack, whose bytes arrive in pieces of any size.

    A file gets its name when its entry is complete, and replaces a file or link of that name. After the first error, every call
    raises it again. 64 KiB of the smallest entries are 3,000 files, which take 0.1 s; a caller that must return sooner feeds
    smaller pieces.
    """

    def __init__(self, root):
        self.files = self.bytes = 0  # files that are complete, and their sizes
        self._root = root
        self._problem = None
        self._file = None
        self._left = 0  # bytes of the current chunk
        self._part, self._needs, self._then = bytearray(), 4, self._on_header_length

    def feed(self, data):
        """Processes the next bytes of the pack. Raises FileError."""
        self._guard(self._take, memoryview(data))

    def finish(self):
        """Checks that the pack ends after a complete entry. Raises FileError."""
        self._guard(self._check_end)

    def abort(self):
        """Deletes the incomplete file."""
        if self._file is not None:
            self._file.discard()
            self._file = None

    def _guard(self, step, *args):
        if self._problem is None:
            path = ""
            try:
                step(*args)
                return
            except (FileError, OSError) as error:
                path = self._file.path if self._file else path
                self._problem = as_file_error(error, path)
                self.abort()
        raise self._problem

    def _take(self, view):
        while view:
            if self._left:
                piece = view[: self._left]
                self._file.write(piece)
                self._left -= len(piece)
                view = view[len(piece) :]
                continue
            missing = self._needs - len(self._part)
            self._part += view[:missing]
            view = view[missing:]
            if len(self._part) == self._needs:
                part, self._part = bytes(self._part), bytearray()
                self._then(part)

    def _on_header_length(self, part):
        length = int.from_bytes(part, "big")
        if not 0 < length <= MAX_HEADER_BYTES:
            raise FileError("invalid", f"a header of {length} bytes; it may have 1 to {MAX_HEADER_BYTES}")
        self._needs, self._then = length, self._on_header

    def _on_header(self, part):
        path, mode, kind, target = _read_header(part)
        if kind == "file":
            self._file = _NewFile(self._root, path, mode)
        elif kind == "link":
            self._file = _NewLink(self._root, path, target)
        else:
            self._file = _Directory(self._root, path, mode)
        self._needs, self._then = 4, self._on_chunk_length

    def _on_chunk_length(self, part):
        if part == BROKEN:
            raise problem("invalid", self._file.path, "its content breaks off")
        length = int.from_bytes(part, "big")
        if length > MAX_CHUNK_BYTES:
            raise problem("invalid", self._file.path, f"a chunk of {length} bytes; it may have {MAX_CHUNK_BYTES}")
        self._left = length
        if length == 0:
            self._file.complete()
            self.files += 1
            self.bytes += self._file.size
            self._file = None
            self._then = self._on_header_length

    def _check_end(self):
        if self._file is not None:
            raise problem("invalid", self._file.path, "the pack ends within it")
        if self._part or self._then != self._on_header_length:
            raise FileError("invalid", "the pack ends within a header")


def _read_header(part):
    """Parses a header. Returns the path, mode, kind and target of the entry."""
    try:
        header = decode(part)
    except ValueError:
        raise FileError("invalid", "a header is not a JSON object") from None
    path, mode = header.get("path"), header.get("mode", DEFAULT_MODE)
    if type(path) is not str:
        raise FileError("invalid", "a header has no path")
    if type(mode) is not int or not 0 <= mode <= 0o777:
        raise problem("invalid", path, "its mode is not one of 0 to 0o777")
    if "error" in header:
        raise problem("invalid", path, "the entry reports an error")
    kind, target = header.get("kind", "file"), header.get("target", "")
    if kind not in ("file", "link", "directory"):
        raise problem("invalid", path, "its kind is not file, link or directory")
    if type(target) is not str or (kind == "link") != (target != "") or "\0" in target:
        raise problem("invalid", path, "a link needs a target, and nothing else has one")
    return path, mode, kind, target


class _NewLink:
    """A symbolic link. It replaces a file or a link. Its entry has no content."""

    size = 0

    def __init__(self, root, path, target):
        *parents, self._name = plain_parts(path)
        if self._name.startswith(TEMPORARY):
            raise problem("invalid", path, f"a name may not begin with {TEMPORARY}")
        self.path = path
        self._target = target
        self._directory = open_directory(root, path, parents, 0o755)

    def write(self, _):
        """Raises FileError: the entry has no content."""
        raise problem("invalid", self.path, "a link has no content")

    def complete(self):
        """Creates the link."""
        temporary = f"{TEMPORARY}{os.urandom(16).hex()}"
        os.symlink(self._target, temporary, dir_fd=self._directory)
        try:
            os.rename(temporary, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except OSError:
            os.unlink(temporary, dir_fd=self._directory)
            raise
        self.discard()

    def discard(self):
        """Closes the descriptor of its directory."""
        os.close(self._directory)


class _Directory:
    """A directory. It is created if it is missing, and gets the mode. Its entry has no content."""

    size = 0

    def __init__(self, root, path, mode):
        self.path = path
        self._mode = mode
        self._fd = open_directory(root, path, plain_parts(path), mode)

    def write(self, _):
        """Raises FileError: the entry has no content."""
        raise problem("invalid", self.path, "a directory has no content")

    def complete(self):
        """Sets the mode."""
        os.fchmod(self._fd, self._mode)
        self.discard()

    def discard(self):
        """Closes its descriptor."""
        os.close(self._fd)


class _NewFile:
    """A file that is being written under a temporary name in its directory."""

    def __init__(self, root, path, mode):
        *parents, self._name = plain_parts(path)
        if self._name.startswith(TEMPORARY):
            raise problem("invalid", path, f"a name may not begin with {TEMPORARY}")
        self.path = path
        self.size = 0
        self._mode = mode
        self._directory = open_directory(root, path, parents, 0o755)
        try:
            self._check_place()
            self._temporary = f"{TEMPORARY}{os.urandom(16).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._temporary, flags, 0o600, dir_fd=self._directory)
        except BaseException as error:
            os.close(self._directory)
            raise as_file_error(error, path) if isinstance(error, OSError) else error

    def write(self, view):
        """Appends bytes."""
        self.size += len(view)
        while view:
            view = view[os.write(self._fd, view) :]

    def complete(self):
        """Gives the file its name."""
        os.fchmod(self._fd, self._mode)
        self._check_place()
        os.rename(self._temporary, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._close()

    def discard(self):
        """Deletes the file."""
        try:
            os.unlink(self._temporary, dir_fd=self._directory)
        except OSError:  # a script has already deleted it
            pass
        self._close()

    def _check_place(self):
        try:
            found = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISDIR(found.st_mode):
            raise problem("exists", self.path, "it is a directory")

    def _close(self):
        os.close(self._fd)
        os.close(self._directory)


class PackReader:
    """Creates a pack of files, in the order of the requested paths."""

    def __init__(self, root, paths, max_file_bytes=None, max_total_bytes=None):
        self.files = self.bytes = 0  # files whose headers were written, and their sizes
        self._root = root
        self._paths = paths
        self._max_file_bytes = max_file_bytes
        self._max_total_bytes = max_total_bytes
        self._buffer = bytearray()

    def chunks(self):
        """Yields pieces of the pack of at most 64 KiB, at least every 20 ms."""
        slice_ = Slice()
        for path in self._paths:
            for piece in self._entry(path):
                yield piece
                slice_.restart()
            if slice_.is_over() and self._buffer:
                yield self._flush()
                slice_.restart()
        if self._buffer:
            yield self._flush()

    def _entry(self, path):
        try:
            fd, found = self._open(path)
        except FileError as error:
            yield from self._put_header({"path": path, "error": {"code": error.code, "message": str(error)}})
            return
        try:
            header = {
                "path": path,
                "mode": stat.S_IMODE(found.st_mode) & 0o777,
                "size": min(found.st_size, MAX_SAFE_INTEGER),
                "mtime_ms": mtime_ms(found),
            }
            if (yield from self._put_header(header)):
                self.files += 1
                self.bytes += found.st_size
                yield from self._put_content(fd, found.st_size)
        finally:
            os.close(fd)

    def _open(self, path):
        fd, found = open_to_read(self._root, path)
        try:
            size = found.st_size
            if stat.S_ISDIR(found.st_mode):
                raise problem("not_a_file", path, "it is a directory")
            if self._max_file_bytes is not None and size > self._max_file_bytes:
                raise problem("too_large", path, f"it has {size} bytes; a file may have {self._max_file_bytes}")
            if self._max_total_bytes is not None and self.bytes + size > self._max_total_bytes:
                raise problem("too_large", path, f"its {size} bytes exceed the limit of {self._max_total_bytes} for all files")
        except BaseException:
            os.close(fd)
            raise
        return fd, found

    def _put_header(self, header):
        """Adds a header. If it is too long, adds an error instead and returns False."""
        encoded = encode(header)[:-1]
        fits = len(encoded) <= MAX_HEADER_BYTES
        if not fits:
            error = {"code": "invalid", "message": f"the path does not fit into a header of {MAX_HEADER_BYTES} bytes"}
            encoded = encode({"path": header["path"][:MAX_LONG_PATH], "error": error})[:-1]
        if len(self._buffer) + 4 + len(encoded) > PIECE_BYTES:
            yield self._flush()
        self._buffer += len(encoded).to_bytes(4, "big") + encoded
        return fits

    def _put_content(self, fd, size):
        """Adds as many bytes as the file had when it was opened, because a script could append without end."""
        left = size
        while left > 0:
            room = PIECE_BYTES - len(self._buffer) - 8  # the length of the chunk, and the end of the entry
            if room < SMALLEST_READ_BYTES:
                yield self._flush()
                continue
            try:
                data = os.read(fd, min(room, left))
            except OSError:
                data = b""
            if not data:
                self._buffer += BROKEN
                return
            self._buffer += len(data).to_bytes(4, "big") + data
            left -= len(data)
        if len(self._buffer) + 4 > PIECE_BYTES:
            yield self._flush()
        self._buffer += bytes(4)

    def _flush(self):
        piece, self._buffer = bytes(self._buffer), bytearray()
        return piece
