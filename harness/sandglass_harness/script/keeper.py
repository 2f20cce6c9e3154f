"""Workspace mode: a keeper for each activity, which owns all its processes and ends them.

The zygote forks keepers. A keeper adopts the orphans of its activity, so that it knows when the last one is gone. It forks the
first process of the activity in advance, which waits to become a script or a program. No script runs in a keeper.
"""

import _socket
import json
import os
import signal
import struct
import sys
import time

from ..caps import MAX_MISSING_ITEMS, RESERVED_PIDS
from ..libc import prctl
from . import child, descendants, emit, landlock, program, script_process
from .commands import answer, discard_signals, reap_others, receive_with_fds
from .script_process import FRAME_FD

END_SEC = 0.4  # shorter than the broker's limit for the answer
MAX_ORDER = 128 << 10  # the pids of 256 sessions with all their copies
PAUSE_SEC, MAX_PAUSE_SEC = 0.0003, 0.01  # between two passes over the remaining processes: per process, and at most
MAX_NAMED = 2000  # ended processes whose names are counted
MAX_ENDED = 2000  # ended processes whose statuses are kept


def is_possible():
    """True if the kernel supports what keepers need: subreapers, and pidfds for the broker. Probes both."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return descendants.can_adopt()


def serve(control, preloaded):
    """Forks keepers at the broker's command until the broker is gone. Never returns."""
    while True:
        message, fds = receive_with_fds(control)
        if not message:
            os._exit(0)
        reap_others()
        discard_signals()
        try:
            pid = os.fork()
        except OSError:  # the process limit is reached
            pid = 0
        else:
            if pid == 0:
                os.close(control.detach())
                _keep(fds, preloaded)
        for fd in fds:
            os.close(fd)
        answer(control, pid)


class _Keeper:
    """The first process of an activity, and all processes that it started."""

    def __init__(self, control):
        self._control = control
        prctl(descendants.PR_SET_CHILD_SUBREAPER, 1)
        # Probed, because a kernel can accept the call without enforcing it.
        self._has_domain = landlock.scope_signals() and landlock.refuses_signals_to(os.getppid())
        self._statuses = {}  # of the processes whose status the broker asks for: None while they live
        self._ended = {}  # of others, because the broker may ask for the first process of a branch later
        self._first = 0
        # A handler, so that the signal interrupts the wait for the broker.
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())

    def fork_first(self):
        """Forks the first process. Returns 0 in it."""
        try:
            self._first = os.fork()
        except OSError:
            self._first = -1
        self._statuses[self._first] = None
        if self._first == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            if self._has_domain:
                landlock.scope_signals()  # a nested domain, so that it cannot signal the keeper
        return self._first

    def serve(self):
        """Sends the broker the pid, and executes its orders until the activity is over. Never returns."""
        self._control.send(struct.pack("=i?", self._first, self._has_domain))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
        while True:
            message = self._control.recv(MAX_ORDER)
            if not message:
                os._exit(0)
            if message[:1] == b"K":
                gone = self._end()
                self._control.send(struct.pack("=i?", self._status_of(self._first), gone))
                os._exit(0)
            if message[:1] == b"R":
                self._end_others(**json.loads(message[1:]))
                continue
            number, group = struct.unpack("=ii", message[1:9])
            self._signal(number, group)

    def _signal(self, number, group):
        if self._statuses[self._first] is not None:
            return  # its pid may have been reused
        try:
            os.killpg(group or self._first, number)
        except OSError:
            pass

    def _end(self):
        """Kills everything of the activity. Returns True when nothing is left."""
        deadline = time.monotonic() + END_SEC
        while True:
            if self._has_domain:
                _kill(-1)  # all at once; the domain protects processes outside
            else:
                for pid in descendants.find_living():
                    _kill(pid)
            if self._reap():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE_SEC)

    def _end_others(self, old, own, new, kept, marks, seconds):
        """Kills all processes except those in `kept` and those with one of `marks`, which belong to other sessions. Answers with
        the status of the process `old`, whether no other process is left, and the names of ended processes except `old`, `own` and
        replaced copies. `new` replaces `old`."""
        deadline = time.monotonic() + seconds
        names, was_quiet = {}, False
        while True:
            found = self._stop_all(marks) - set(kept)
            for pid in found:
                if pid not in names:
                    names[pid] = None if pid == old or pid in own else descendants.name_of(pid)
                _send(pid, signal.SIGKILL)
            self._reap()
            # A process that forks and ends during a look at all can hide its child from it, so it takes two.
            is_quiet = not found
            gone = is_quiet and was_quiet
            if gone or time.monotonic() > deadline:
                break
            was_quiet = is_quiet
            # Many processes take long to end, and need CPU time for that.
            time.sleep(min(PAUSE_SEC * len(found), MAX_PAUSE_SEC))
        for pid in kept:
            _send(pid, signal.SIGCONT)
        self._reap()
        programs = [name for name in names.values() if name is not None and not name.startswith(descendants.COPY_PREFIX)]
        answer = struct.pack("=i?", self._status_of(old), gone) + _list_names(programs)
        self._statuses.pop(old, None)
        if new:
            self._statuses[new] = None
        self._first = new or self._first
        self._statuses.setdefault(self._first, signal.SIGKILL)
        self._control.send(answer)

    def _stop_all(self, marks):
        """Stops every process without one of `marks`, so that none can fork while they are listed. Returns their pids."""
        if self._has_domain and not marks:
            _send(-1, signal.SIGSTOP)
            return descendants.find_living()
        found = {pid for pid in descendants.find_living() if descendants.mark_of(pid) not in marks}
        for pid in found:
            _send(pid, signal.SIGSTOP)
        return found

    def _reap(self):
        """Reaps ended children. Returns True if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid in self._statuses:
                self._statuses[pid] = status
                continue
            if len(self._ended) >= MAX_ENDED:
                self._ended.clear()
            self._ended[pid] = status

    def _status_of(self, pid):
        status = self._statuses.get(pid, self._ended.get(pid))
        return signal.SIGKILL if status is None else status


def _keep(fds, preloaded):
    try:
        keeper = _Keeper(_socket.socket(fileno=fds[0]))
        if keeper.fork_first() == 0:
            live(fds[1:], preloaded, reserves=True)
        for fd in fds[1:]:
            os.close(fd)
        keeper.serve()
    finally:
        os._exit(1)


def live(fds, preloaded, reserves=False):
    """Becomes the script, program or session that the broker selects. Never returns. With `reserves`, lowers its process limit so
    that other activities can start."""
    code = 70
    try:
        child.become_a_script_process(fds)
        if reserves:
            _reserve_processes()
        script_process.rehearse()
        home_files = script_process.find_home_files(preloaded)
        connection = _socket.socket(fileno=FRAME_FD)
        kind, received = receive_with_fds(connection, 1)
        connection.detach()
        # Only now: while this process waits, another activity could open its memory, and use that later to read the request or
        # to change the behaviour of this process.
        child.open_up()
        if kind == b"P":
            program.become(script_process.receive, received)
        elif kind == b"C":
            script_process.copy_home_files(home_files)
            _begin_session(received[0], preloaded)
        elif kind:
            emitter = emit.Emitter(FRAME_FD)
            emit.use(emitter)
            script_process.copy_home_files(home_files)
            code = child.run(script_process.receive(), emitter, preloaded)
    except BaseException:
        code = 70
    os._exit(code)


def _begin_session(control_fd, preloaded):
    # A file of another activity must not be imported here in place of a module.
    path = sys.path[:]
    sys.path[:] = [entry for entry in path if entry != os.getcwd()]
    from ..session import head  # only here, because most activities are no sessions

    sys.path[:] = path
    head.begin(control_fd, preloaded)


def _reserve_processes():
    """Leaves process slots to the zygote and to keepers, so that an activity that uses all others cannot block the next one."""
    soft, _ = child.resource.getrlimit(child.resource.RLIMIT_NPROC)
    if soft > 2 * RESERVED_PIDS:
        child.lower(child.resource.RLIMIT_NPROC, soft - RESERVED_PIDS, soft - RESERVED_PIDS)


def _list_names(names):
    """Returns each name once, with its count if that is not 1."""
    counted = {name: names.count(name) for name in names[:MAX_NAMED]}
    listed = [name if count == 1 else b"%s (%d)" % (name, count) for name, count in counted.items()]
    return b"\0".join(listed[:MAX_MISSING_ITEMS])


def _kill(pid):
    _send(pid, signal.SIGKILL)


def _send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass
