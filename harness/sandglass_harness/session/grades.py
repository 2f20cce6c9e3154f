"""Lists what a forked copy of this process would lack."""

import os
import sys
import time

from . import descriptors

WHOLE, PARTIAL = "whole", "partial"
MAX_THREADS = 20  # in a list
# Libraries with threads of their own that continue after a fork: part of the name of the file, and threads per processor.
_SURVIVORS = (("openblas", 1), ("gomp", 1), ("libomp", 1), ("iomp", 1), ("libarrow", 2))
_EXTRA = 8  # threads of pyarrow for input and output
_SURVIVING_NAMES = ("jemalloc_bg_thd",)

_ENDING_SEC, _LOOKS = 0.001, 20  # a thread that has ended for Python is still listed for a moment

_seen = (None, [])  # the native threads of the last call, and the sentences about them
_lost = []  # sentences about the native threads that rollbacks have ended: their libraries do not start them again


def find():
    """Returns ('whole', []), or ('partial', names of what a copy made now would lack). It runs after every cell, so it must be cheap."""
    threads, native = find_threads()
    lacks = [f"thread {name}" for name in threads[:MAX_THREADS]]
    if len(threads) > MAX_THREADS:
        lacks.append(f"{len(threads) - MAX_THREADS} more threads")
    lacks += [*native, *(f"{each}, lost in an earlier rollback" for each in _lost)]
    if "_sqlite3" in sys.modules:
        lacks += [f"the SQLite transaction on {name}" for name in descriptors.find_transactions()]
    return (PARTIAL, lacks) if lacks else (WHOLE, [])


def describe():
    """Returns the result of find() as an object of the wire."""
    grade, lacks = find()
    return {"grade": grade, "lacks": lacks}


def find_deadly():
    """Returns sentences about the native threads of libraries: a copy, which lacks them, may wait for them for ever."""
    return list(dict.fromkeys([*find_threads()[1], *_lost]))


def note_lost(deadly):
    """Notes that this process is a copy which lacks the threads that find_deadly() named in its origin."""
    _lost[:] = deadly


def find_threads():
    """Returns (the names of the Python threads, sentences about native threads) that a fork would lose for good."""
    tasks = set(map(int, os.listdir("/proc/self/task")))
    if len(tasks) == 1:
        return [], []
    threading = sys.modules.get("threading")
    others = [] if threading is None else [thread for thread in list(threading._active.values()) if thread.native_id in tasks]
    main = os.getpid()
    native = frozenset(tasks - {thread.native_id for thread in others} - {main})
    names = [str(thread.name) for thread in others if thread.native_id != main and not _is_replaced(thread)]
    return names, _describe_native_threads(native) if native else []


def _is_replaced(thread):
    """True for a thread of a pool without work: the repairs let the pool start new ones."""
    module = sys.modules.get("concurrent.futures.thread")
    if module is None or getattr(thread, "_target", None) is not module._worker:
        return False
    executor = executor_of(thread)
    return executor is None or (executor._work_queue.empty() and _waits_for_work(thread, module._worker.__code__))


def _waits_for_work(thread, worker):
    """Reads the thread's frame: the pool's own count of idle threads can stay too low for good on Python 3.12."""
    frame = sys._current_frames().get(thread.ident)
    return frame is None or (frame.f_code is worker and frame.f_locals.get("work_item") is None)


def executor_of(thread):
    """Returns the thread pool that a thread works for, or None."""
    arguments = getattr(thread, "_args", ())
    reference = arguments[0] if arguments else None
    return reference() if callable(reference) else None


def _describe_native_threads(native):
    """Returns sentences about native threads. Those of libraries that survive a fork have no names, so only their number tells them apart."""
    global _seen
    if _seen[0] == native:
        return _seen[1]
    named, nameless = {}, 0
    own = _name_of(os.getpid())
    for task in native:
        name = _name_of(task)
        if name in (None, *_SURVIVING_NAMES):
            continue
        if name == own:
            nameless += 1
        else:
            named.setdefault(name.rstrip("0123456789").rstrip("-_ "), []).append(name)
    lacks = [f"the native threads of {kind}" if len(names) > 1 else f"the native thread {names[0]}" for kind, names in sorted(named.items())]
    if nameless and _stay_beyond(native, own, _surviving_threads()):
        lacks.append("native threads of an unknown library")
    _seen = native, lacks
    return lacks


def _stay_beyond(native, own, most):
    """True if more than `most` of the threads have the name `own`, and continue."""
    for _ in range(_LOOKS):
        if sum(_name_of(task) == own for task in native) <= most:
            return False
        time.sleep(_ENDING_SEC)
    return True


def _surviving_threads():
    """Returns how many threads the loaded libraries that survive a fork may have."""
    processors = os.cpu_count() or 1
    paths = set()
    with open("/proc/self/maps", "rb") as lines:
        for line in lines:
            path = line.split(None, 5)[5:]
            paths.update(path)
    names = [os.path.basename(path).decode(errors="replace") for path in paths]
    return sum(processors * most + (_EXTRA if part == "libarrow" else 0) for part, most in _SURVIVORS for name in names if part in name)


def _name_of(task):
    try:
        with open(f"/proc/self/task/{task}/comm", "rb") as file:
            return file.read().decode(errors="replace").strip()
    except OSError:
        return None
