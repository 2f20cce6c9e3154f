"""Opens the files of a forked process again, because a fork shares open file descriptions with its origin: positions, and locks of
flock(2), which last until every process has closed the file."""

import fcntl
import os

SAMPLED = 32 << 10  # bytes at the start, and at the end, of a file's old content, by which a rollback finds that it was overwritten
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_SYNC | os.O_DSYNC | getattr(os, "O_DIRECT", 0)


def make_own(noted, skipped=None):
    """Opens the files of this process again, a fork that becomes a copy, except the descriptor `skipped`. Otherwise a lock of flock
    would last as long as the copy when a cell closes the file. Records a sample of what they contain. Never raises an OSError."""
    files = [each for each in noted if each.has_position and each.fd != skipped and each.is_here()]
    for same in _group_by_description(files):
        is_own = _reopen(same)
        for each in same:
            each.is_shared = not is_own
            if each.is_written and each.sampled is None:  # a copy of a copy has the first one
                each.sample, each.sampled = sample(each.fd, each.size), each.size


def _group_by_description(files):
    """Returns lists of descriptors that share an open file description, as those of dup(2) do."""
    similar = {}
    for each in files:
        similar.setdefault((each.stat.st_dev, each.stat.st_ino, each.flags, each.position), []).append(each)
    return [same for group in similar.values() for same in ([group] if len(group) == 1 else _split(group))]


def _split(files):
    """Splits descriptors of one file by a flag that has no effect on files, and that belongs to the description: in turn, each bit of a
    descriptor's place is set as the flag of all, and read from all. Those with one description read the place of the last of them."""
    places = [0] * len(files)
    try:
        for bit in range(len(files).bit_length()):
            for place, each in enumerate(files):
                fcntl.fcntl(each.fd, fcntl.F_SETFL, each.flags ^ (os.O_NONBLOCK if place >> bit & 1 else 0))
            for place, each in enumerate(files):
                places[place] |= (fcntl.fcntl(each.fd, fcntl.F_GETFL) != each.flags) << bit
        for each in files:
            fcntl.fcntl(each.fd, fcntl.F_SETFL, each.flags)
    except OSError:
        return [[each] for each in files]
    groups = {}
    for place, each in zip(places, files):
        groups.setdefault(place, []).append(each)
    return list(groups.values())


def _reopen(same):
    """Returns False if the file of these descriptors cannot be opened again, for example because its mode has changed."""
    first = same[0]
    if any(kind == "LEASE" for kind, *_ in first.locks):  # which opening would break
        return False
    try:
        own = os.open(f"/proc/self/fd/{first.fd}", first.flags & _KEPT_FLAGS | os.O_CLOEXEC)
    except OSError:
        return False
    for each in same:
        os.dup2(own, each.fd, inheritable=os.get_inheritable(each.fd))
    os.close(own)
    return True


def sample(fd, size):
    """Returns a hash of the start and the end of the first `size` bytes of a file, None if it cannot be read. Reads little, because
    cells wait for it."""
    if size == 0:
        return 0
    try:
        own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)  # the descriptor may be for writing only
    except OSError:
        return None
    try:
        end = max(size - SAMPLED, 0)
        return hash((os.pread(own, min(size, SAMPLED), 0), os.pread(own, size - end, end)))
    except OSError:
        return None
    finally:
        os.close(own)
