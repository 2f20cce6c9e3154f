"""Lists what a forked copy of this process would lack."""

import os
import sys
import time

from ..caps import MAX_MISSING_ITEM_CHARS, MAX_MISSING_ITEMS
from ..text import cut_head
from ..script import explain
from . import descriptors, file_limit, proc

WHOLE, PARTIAL, NONE = "whole", "partial", "none"
MAX_THREADS = 20  # names in a list
# Libraries that recreate their threads after a fork: a part of the file name, and the number of threads per CPU.
_SURVIVORS = (("openblas", 1), ("gomp", 1), ("libomp", 1), ("iomp", 1), ("libarrow", 2))
_EXTRA = 8  # I/O threads of pyarrow
_SURVIVING_NAMES = ("jemalloc_bg_thd",)

_ENDING_SEC, _LOOKS = 0.001, 20  # pause and number of checks: the kernel still lists an ended thread for a moment

_UNKNOWN = "native threads of an unknown library"

_seen = (None, [])  # what the last call found: the native threads, and the messages about them
_nameless = frozenset()  # those of them without a name
_outlived = frozenset()  # those without a name that were there before and after a fork
_lost = []  # messages about native threads that rollbacks have ended, and that their libraries do not start again


def find():
    """Returns ('whole', []), or ('partial', a list of what a copy made now would lack). It runs after every cell, so it must be
    fast."""
    threads, native = find_threads()
    lacks = [f"thread {name}" for name in threads[:MAX_THREADS]]
    if len(threads) > MAX_THREADS:
        lacks.append(f"{len(threads) - MAX_THREADS} more threads")
    lacks += [*native, *(f"{each}, lost in an earlier rollback" for each in _lost)]
    if "_sqlite3" in sys.modules:
        lacks += [f"the SQLite transaction on {name}" for name in descriptors.find_transactions()]
    return (PARTIAL, lacks) if lacks else (WHOLE, [])


def describe():
    """Returns the result of find() as a field of the wire. Never raises, whatever cells have done to Python, because the broker
    waits for the end of the cell."""
    try:
        file_limit.raise_until_cell()
        grade, lacks = find()
    except BaseException as error:
        grade, lacks = NONE, [f"it is not known what a copy would lack: {explain.describe_briefly(error)}"]
    return {"grade": grade, "lacks": cut_items(lacks)}


def cut_items(lacks):
    """Returns what the broker keeps of a list of what is lacking. A script chooses the names of its threads and files, and the kernel
    refuses a message that is too long."""
    return [cut_head(each, MAX_MISSING_ITEM_CHARS) for each in lacks[:MAX_MISSING_ITEMS]]


def find_deadly():
    """Returns messages about native threads of libraries, for which a copy, which lacks them, may wait forever."""
    return list(dict.fromkeys([*find_threads()[1], *_lost]))


def note_lost(deadly):
    """Records that this process is a copy that lacks the threads which find_deadly() found in its origin."""
    _lost[:] = deadly


def find_threads():
    """Returns (names of Python threads, messages about native threads) that a fork would lose permanently."""
    tasks = _tasks_of("self")
    if len(tasks) == 1:
        return [], []
    threading = sys.modules.get("threading")
    others = [] if threading is None else [thread for thread in list(threading._active.values()) if thread.native_id in tasks]
    main = os.getpid()
    native = frozenset(tasks - {thread.native_id for thread in others} - {main})
    names = [str(thread.name) for thread in others if thread.native_id != main and not _is_replaced(thread)]
    return names, _describe_native_threads(native) if native else []


def _is_replaced(thread):
    """True for an idle thread of a pool, which can start new threads after the repairs."""
    module = sys.modules.get("concurrent.futures.thread")
    if module is None or getattr(thread, "_target", None) is not module._worker:
        return False
    executor = executor_of(thread)
    return executor is None or (executor._work_queue.empty() and _waits_for_work(thread, module._worker.__code__))


def _waits_for_work(thread, worker):
    """True if the thread is idle. Reads its frame, because the pool's count of idle threads can stay too low on Python 3.12."""
    frame = sys._current_frames().get(thread.ident)
    return frame is None or (frame.f_code is worker and frame.f_locals.get("work_item") is None)


def executor_of(thread):
    """Returns the thread pool that a thread works for, or None."""
    arguments = getattr(thread, "_args", ())
    reference = arguments[0] if arguments else None
    return reference() if callable(reference) else None


def _describe_native_threads(native):
    """Returns messages about native threads. Threads of libraries that survive a fork are unnamed, so only their number is
    checked."""
    global _seen, _nameless
    found = native, native & _outlived
    if _seen[0] == found:
        return _seen[1]
    named, nameless = {}, set()
    own = _name_of(os.getpid())
    for task in native:
        name = _name_of(task)
        if name in (None, *_SURVIVING_NAMES):
            continue
        if name == own:
            nameless.add(task)
        else:
            named.setdefault(name.rstrip("0123456789").rstrip("-_ "), []).append(name)
    lacks = [f"the native threads of {kind}" if len(names) > 1 else f"the native thread {names[0]}" for kind, names in sorted(named.items())]
    if nameless and (_stay_beyond(nameless, own, _surviving_threads()) or _stay_beyond(nameless & _outlived, own, _surviving_threads(True))):
        lacks.append(_UNKNOWN)
    _seen, _nameless = (found, lacks), frozenset(nameless)
    return lacks


def note_outlived():
    """Records which native threads are there after a fork. They are not of OpenBLAS, which ends its own before each fork."""
    global _outlived
    if _nameless:
        _outlived = _nameless & _tasks_of("self")


def find_outlived(origin):
    """Returns a message about native threads that the origin of this copy, which waits, has kept over the fork, and that find() could
    have taken for those of OpenBLAS."""
    if not _nameless or _UNKNOWN in _seen[1]:
        return []
    most = 0
    for look in range(_LOOKS):
        if len(_nameless & _tasks_of(origin)) <= most:
            return []
        most = most if look else _surviving_threads(True)
        time.sleep(_ENDING_SEC)
    return [_UNKNOWN]


def _stay_beyond(native, own, most):
    """True if more than `most` of the threads have the name `own` and do not end soon."""
    for _ in range(_LOOKS):
        if sum(_name_of(task) == own for task in native) <= most:
            return False
        time.sleep(_ENDING_SEC)
    return True


def _surviving_threads(is_after_fork=False):
    """Returns the maximum number of threads of the loaded libraries that survive a fork, or that are there directly after one."""
    processors = os.cpu_count() or 1
    paths = {path for line in proc.read_maps() for path in line.split(None, 5)[5:]}
    names = [os.path.basename(path).decode(errors="replace") for path in paths]
    survivors = [each for each in _SURVIVORS if not (is_after_fork and each[0] == "openblas")]
    return sum(processors * most + (_EXTRA if part == "libarrow" else 0) for part, most in survivors for name in names if part in name)


def _tasks_of(pid):
    return frozenset(map(int, proc.list_names(f"/proc/{pid}/task")))


def _name_of(task):
    try:
        return proc.read(f"/proc/self/task/{task}/comm").decode(errors="replace").strip()
    except OSError:
        return None
