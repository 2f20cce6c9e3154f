"""Finds the open files of SQLite, and which of its databases are in a transaction. A copy of the process cannot continue one.

In WAL mode a connection holds a shared lock on its database, and one on byte 128 of its index (`-shm`), until it is closed. A copy
can take both again, as another process would. The bytes before 128 are locked during a transaction only.
"""

import gc
import os
import struct
import sys

from .. import libc
from . import proc

PARTS = ("", "-journal", "-wal", "-shm")
INDEX = "-shm"
_DATABASE_LOCKS = range(0x40000000, 0x40000000 + 512)
_INDEX_LOCKS = range(120, 128)


def find(noted):
    """Returns (names of the databases in a transaction, names of those in WAL mode that are in none)."""
    locks = [(each.name(), start) for each in noted for kind, _, start, _ in each.locks if kind == "POSIX"]
    locked = {name for name, start in locks if start in _DATABASE_LOCKS}
    if not locked:
        return set(), set()
    names = {each.name() for each in noted if each.has_position}
    busy = {name.removesuffix(INDEX) for name, start in locks if is_index(name) and start in _INDEX_LOCKS}
    idle = {name for name in locked - busy if name + INDEX in names}
    return locked - idle, idle


def is_index(path):
    """True for the index of a database in WAL mode."""
    return path.endswith(INDEX)


def close_connections(databases):
    """Closes the connections to databases whose files are disabled: SQLite lets connections of one process share their locks, so that
    a new one would not work beside them. Those of another thread stay open."""
    sqlite = sys.modules.get("_sqlite3")
    if sqlite is None or not databases:
        return
    gc.unfreeze()  # otherwise the objects of earlier cells are not found
    objects = gc.get_objects()
    gc.freeze()
    cursors = [each for each in objects if issubclass(type(each), sqlite.Cursor)]
    for connection in objects:
        if not issubclass(type(connection), sqlite.Connection):
            continue
        try:
            if not databases.isdisjoint(_find_databases(sqlite, connection)):
                for cursor in cursors:  # SQLite keeps a connection open until its statements have ended
                    _close_cursor(sqlite, cursor, connection)
                sqlite.Connection.close(connection)
        except Exception:  # it is closed, or belongs to another thread
            continue


def _find_databases(sqlite, connection):
    """Returns the paths of the databases of a connection."""
    cursor = sqlite.Connection.cursor(connection)
    cursor.row_factory = None
    found = [os.fsdecode(name) for _, _, name in cursor.execute("pragma database_list").fetchall() if name]
    cursor.close()
    return found


def _close_cursor(sqlite, cursor, connection):
    try:
        if sqlite.Cursor.connection.__get__(cursor) is connection:
            sqlite.Cursor.close(cursor)
    except Exception:  # it was never initialised
        pass


def replace_index(index):
    """Replaces an index that this process has mapped by one of an unknown version: SQLite refuses it at once, also for a new
    connection beside the old one. SQLite believes that it still holds its locks, and would change the entries of others."""
    path, size = index.name(), os.fstat(index.fd).st_size
    mapped = [fields for fields in (line.split(None, 5) for line in proc.read_maps()) if len(fields) > 5]
    own = os.memfd_create("index")
    os.write(own, 2 * _make_header())
    os.ftruncate(own, size)
    for addresses, _, offset, *_, name in mapped:
        if os.fsdecode(name.strip()).removesuffix(" (deleted)") == path:
            start, end = (int(each, 16) for each in addresses.split(b"-"))
            libc.map_privately(own, start, end - start, int(offset, 16))
    os.dup2(own, index.fd, inheritable=False)
    os.close(own)


def _make_header():
    """Returns the header of an empty index (https://sqlite.org/walformat.html) with the version 0."""
    words = [0, 0, 0, int.from_bytes(b"\1\0\0\0", sys.byteorder), *6 * [0]]  # the fourth begins with the byte "is initialised"
    first = second = 0
    for even, odd in zip(words[::2], words[1::2]):
        first = first + even + second & 0xFFFFFFFF
        second = second + odd + first & 0xFFFFFFFF
    return struct.pack("=12I", *words, first, second)
