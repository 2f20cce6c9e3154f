"""Unpacks a directory of the host into a volume: the program that an `exec` starts in the container beside a sandbox.

The sandbox has the volume read-only, and the files belong to the uid of this container. Standard input comes in pieces of a length
and as many bytes (an empty piece is a heartbeat), which together are a zlib stream of entries: the length of a header, the header in
JSON, the content of the file. A header of length 0 ends it. The answer is one line.
"""

import json
import os
import sys
import zlib

PIECE_BYTES = 1 << 20
LENGTH_BYTES = 4


def pieces(stream):
    """Yields the pieces of the host."""
    while len(header := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        yield stream.read(int.from_bytes(header, "big"))


def inflate(compressed):
    """Yields the content of a zlib stream in parts of bounded size."""
    inflater = zlib.decompressobj()
    for piece in compressed:
        while True:
            part = inflater.decompress(piece, PIECE_BYTES)
            if part:
                yield part
            piece = inflater.unconsumed_tail
            if not piece and len(part) < PIECE_BYTES:
                break
    raise EOFError("the connection ended within a directory")


class Content:
    """Reads the entries from parts of any size."""

    def __init__(self, parts):
        self._parts = parts
        self._held = memoryview(b"")

    def read(self, count):
        """Returns as many bytes."""
        return b"".join(self.take(count))

    def take(self, count):
        """Yields as many bytes in parts."""
        while count:
            if not self._held:
                self._held = memoryview(next(self._parts))
            part, self._held = self._held[:count], self._held[count:]
            count -= len(part)
            yield part


def unpack(target, content):
    """Makes the files, directories and links of the stream below `target`."""
    while length := int.from_bytes(content.read(LENGTH_BYTES), "big"):
        header = json.loads(content.read(length))
        path = os.path.join(target, header["path"])
        kind = header["kind"]
        if kind == "directory":
            os.mkdir(path, 0o755)
        elif kind == "link":
            os.symlink(header["target"], path)
        else:
            write_file(path, header, content)


def write_file(path, header, content):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if header["executable"] else 0o644)
    try:
        for part in content.take(header["size"]):
            while part:
                part = part[os.write(fd, part) :]
        # Byte code is stale if the time of its source differs.
        os.utime(fd, (header["mtime"], header["mtime"]))
    finally:
        os.close(fd)


def main():
    os.umask(0o022)
    try:
        unpack(sys.argv[1], Content(inflate(pieces(sys.stdin.buffer))))
    except (OSError, EOFError) as error:
        sys.exit(f"the directory could not be unpacked: {error}")
    print("unpacked", flush=True)


main()
