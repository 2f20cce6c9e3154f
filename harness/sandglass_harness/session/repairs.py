"""Repairs what a fork breaks, in a copy that replaces its origin.

A fork keeps the memory of one thread. It loses the other threads, child processes and timers, shares the positions in files, and
makes the standard library draw new random numbers.
"""

import os
import signal
import sys

from . import descriptors, event_loops, grades, proc

KILLED = -signal.SIGKILL
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_BROKEN = "its processes ended when the session was rolled back"
_STAY = "stay with the session that this branch comes from"
_ELSEWHERE = f"its processes {_STAY}"
_UNKNOWN_RANDOM = object()
_OPENMP = ("gomp", "libomp", "iomp")


class Noted:
    """The state before a fork that the copy cannot determine itself."""

    def __init__(self, random_state, timers, children, opened, lacks, deadly):
        self.random_state, self.timers, self.children, self.opened = random_state, timers, children, opened
        self.lacks, self.deadly = lacks, deadly

    def add_lacks(self, deadly):
        """Adds native threads that were found after the fork."""
        self.lacks, self.deadly = self.lacks + deadly, self.deadly + deadly


def note(_namespace):
    """Records what a copy needs for apply(). Call it between cells, before the fork, in the process that ran the cells. A copy of
    a copy uses the record of its origin."""
    has_children = "subprocess" in sys.modules or "multiprocessing.process" in sys.modules
    return Noted(
        _note_random(),
        [signal.getitimer(timer) for timer in _TIMERS],
        _find_children() if has_children else {},
        descriptors.note(),
        grades.find()[1],
        grades.find_deadly(),
    )


def apply(noted, namespace, changed=(), removes=False, is_branch=False):
    """Repairs this process, a copy, before its first cell. `changed` are the files that find_changed() returned when the cell that
    is rolled back began; `removes` what that cell appended to open files. Where `is_branch`, the origin lives on. Returns messages
    about what could not be repaired."""
    messages = [f"{'not in this branch' if is_branch else 'lost'}: {lack}" for lack in noted.lacks]
    grades.note_lost(noted.deadly)
    descriptors.note_changed(noted.opened, changed)
    for repair in (
        lambda: _describe_process_id(namespace),
        lambda: _repair_random(noted),
        lambda: _repair_timers(noted),
        lambda: _repair_processes(noted.children, is_branch),
        _repair_thread_pools,
        lambda: _repair_process_pools(_ELSEWHERE if is_branch else _BROKEN),
        _repair_trackers,
        _repair_openmp,
        lambda: event_loops.repair(namespace, noted.opened, _ends_in_loops(noted.children, is_branch)),
        lambda: descriptors.restore(noted.opened, removes, is_branch),
        lambda: _describe_shared_memory("stays shared with the session that this branch comes from" if is_branch else "is not restored"),
    ):
        try:
            messages += repair() or ()
        except Exception as error:  # another version of a library, or an object that a script has changed
            messages.append(f"a repair failed: {type(error).__name__}")
    return messages


def _describe_process_id(namespace):
    return ["the process id changes with each rollback and branch: a stored one is stale"] if namespace.names_process_id else []


def _note_random():
    """Returns the state of the module's generator; None if it is not loaded, _UNKNOWN_RANDOM if a cell has put something else in its
    place."""
    try:
        return sys.modules["random"].getstate() if "random" in sys.modules else None
    except Exception:
        return _UNKNOWN_RANDOM


def _repair_random(noted):
    if noted.random_state is _UNKNOWN_RANDOM:
        return ["the state of the module random is not restored"]
    if noted.random_state is not None:
        sys.modules["random"].setstate(noted.random_state)
    return []


def _repair_timers(noted):
    for timer, (left, interval) in zip(_TIMERS, noted.timers):
        if left > 0:
            signal.setitimer(timer, left, interval)


def _find_children():
    """Returns a dict from the pids of child processes to their exit codes, None for a living one."""
    found = {}
    for task in proc.list_names("/proc/self/task"):
        try:
            pids = proc.read(f"/proc/self/task/{task}/children").split()
        except OSError:
            continue
        for pid in map(int, pids):
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if ended is None:
                found[pid] = None
            else:
                found[pid] = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    return found


def _repair_processes(children, is_branch):
    """Sets the exit codes of process objects. For a process that is no longer a child, subprocess would assume the exit code 0, and
    multiprocessing would assume that it lives. Returns messages about the living children of a branch's origin."""
    living = [pid for pid, code in children.items() if code is None]
    ends = _ends_of(children, is_branch)
    if ends and "subprocess" in sys.modules:
        _patch_popen(sys.modules["subprocess"].Popen, ends)
    process = sys.modules.get("multiprocessing.process")
    for child in list(getattr(process, "_children", ())):
        popen = child._popen
        if popen is None or popen.returncode is not None or popen.pid not in ends:
            continue
        if ends[popen.pid] is None:
            process._children.discard(child)
            child._popen = _ForeignProcess(popen.pid)
        else:
            child._parent_pid = os.getpid()
            popen.returncode = ends[popen.pid]
    for child in list(getattr(process, "_dangling", ())):  # which has all objects
        if child._popen is None or child._popen.returncode is not None:
            child._parent_pid = os.getpid()
    return [f"programs {_STAY}: {', '.join(map(_name_of, living[: descriptors.MAX_NAMES]))}"] if is_branch and living else []


def _ends_of(children, is_branch):
    """Returns the exit codes of child processes by pid, None for a process that stays with the origin of a branch."""
    return {pid: (None if is_branch else KILLED) if code is None else code for pid, code in children.items()}


def _ends_in_loops(children, is_branch):
    return {pid: _foreign_error(pid) if end is None else end for pid, end in _ends_of(children, is_branch).items()}


class _ForeignProcess:
    """Stands for a process that stays with the origin of a branch. Its signals would reach that process."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self, *_args):
        """Raises ChildProcessError."""
        raise _foreign_error(self.pid)

    wait = terminate = kill = interrupt = poll

    def close(self):
        """Does nothing."""


def _foreign_error(pid):
    return ChildProcessError(f"process {pid} belongs to the session that this branch comes from")


def _name_of(pid):
    try:
        return proc.read(f"/proc/{pid}/comm").decode(errors="replace").strip()
    except OSError:
        return str(pid)


def _patch_popen(kind, ends):
    """Lets process objects use the exit codes in `ends`. None stands for a process of the session that this branch comes from."""
    if hasattr(kind, "_sandglass_ends"):
        kind._sandglass_ends.update(ends)
        return
    kind._sandglass_ends = ends
    poll, try_wait = kind._internal_poll, kind._try_wait

    def is_lost(popen):
        if popen.returncode is not None or popen.pid not in ends:
            return False
        try:
            os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False  # a new child of this process has the same pid

    def end_of(popen):
        if ends[popen.pid] is None:
            raise _foreign_error(popen.pid)
        return ends[popen.pid]

    def _internal_poll(self, *args, **kwargs):
        is_of_subprocess = args or kwargs  # which asks for an object that nothing refers to any more
        if is_lost(self) and not (is_of_subprocess and ends[self.pid] is None):
            self.returncode = end_of(self)
        return poll(self, *args, **kwargs)

    def _try_wait(self, flags):
        if not is_lost(self):
            return try_wait(self, flags)
        code = end_of(self)
        return self.pid, -code if code < 0 else code << 8  # in the format of waitpid(2)

    kind._internal_poll, kind._try_wait = _internal_poll, _try_wait


def _repair_thread_pools():
    """Lets thread pools start new threads."""
    module = sys.modules.get("concurrent.futures.thread")
    if module is None:
        return
    import threading

    for thread in list(module._threads_queues):
        executor = grades.executor_of(thread)
        module._threads_queues.pop(thread, None)
        if executor is None or thread not in executor._threads:
            continue
        left, executor._work_queue = executor._work_queue, type(executor._work_queue)()
        executor._threads = set()
        executor._idle_semaphore = threading.Semaphore(0)
        executor._shutdown_lock = threading.Lock()
        while not left.empty():
            executor._work_queue.put(left.get_nowait())
            executor._adjust_thread_count()


def _repair_process_pools(why):
    """Makes process pools, whose processes this process does not have, raise the error `why` instead of waiting forever."""
    messages = []
    for name in ("concurrent.futures.process", "joblib.externals.loky.process_executor", "loky.process_executor"):
        module = sys.modules.get(name)
        for thread in list(getattr(module, "_threads_wakeups", ())):
            executor = thread.executor_reference()
            if executor is None:
                continue
            module._threads_wakeups.pop(thread, None)
            if name.startswith("concurrent"):
                executor._broken = why
                messages.append(f"a process pool: {why}")
    for name in ("joblib.externals.loky.reusable_executor", "loky.reusable_executor"):
        if name in sys.modules:
            sys.modules[name]._executor = None  # the next call creates a new one
    pools = sys.modules.get("multiprocessing.pool")
    if pools is not None:
        for finalizer in list(sys.modules["multiprocessing.util"]._finalizer_registry.values()):
            pool = finalizer._weakref() if finalizer._weakref is not None else None
            if isinstance(pool, pools.Pool) and not isinstance(pool, pools.ThreadPool) and pool._state == pools.RUN:
                pool._state = pools.TERMINATE
                finalizer.cancel()  # it would wait for a lock that an ended worker held, and end the workers of a branch's origin
                messages.append(f"a process pool: {why}")
            elif isinstance(pool, pools.ThreadPool) and pool._state == pools.RUN:
                pool._state = pools.TERMINATE
                messages.append("a multiprocessing.pool.ThreadPool: its threads are lost")
    return messages


def _repair_trackers():
    """Lets multiprocessing start new helper processes."""
    for name in ("multiprocessing.resource_tracker", "joblib.externals.loky.backend.resource_tracker"):
        tracker = getattr(sys.modules.get(name), "_resource_tracker", None)
        if tracker is not None and tracker._fd is not None:
            os.close(tracker._fd)
            tracker._fd = tracker._pid = None
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    if server is not None and server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None


def _repair_openmp():
    """Limits OpenMP to one thread. GNU OpenMP would wait forever for the threads that it had before the fork."""
    paths = {os.fsdecode(line.split(None, 5)[5].strip()) for line in proc.read_maps() if b"omp" in line and line.count(b"/")}
    for path in paths:
        if not any(part in os.path.basename(path) for part in _OPENMP):
            continue
        import ctypes

        try:
            ctypes.CDLL(path, mode=os.RTLD_NOLOAD).omp_set_num_threads(1)
        except (OSError, AttributeError):
            continue


def _describe_shared_memory(what):
    names = descriptors.find_shared_memory()
    return [f"shared memory {what}: {', '.join(names[: descriptors.MAX_NAMES])}"] if names else []
