"""Workspace mode: a keeper for each activity, which owns all processes of it and ends them.

The zygote forks keepers. A keeper adopts the orphans of its activity, so that it knows when the last one is gone. It forks the
first process of the activity ahead, which waits to become a script or a program. No script runs in a keeper.
"""

import _socket
import os
import signal
import struct
import time

from ..caps import RESERVED_PIDS
from ..libc import prctl
from . import child, descendants, emit, landlock, program, runtime, script_process
from .commands import answer, discard_signals, reap_others, receive_with_fds
from .script_process import FRAME_FD

END_SEC = 0.4  # less than the broker waits for the answer


def is_possible():
    """True if the kernel has what keepers need, and the broker for them: a process that adopts orphans, and descriptors of
    processes. Tried."""
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
        except OSError:  # no process can be made now
            pid = 0
        else:
            if pid == 0:
                control.detach()
                _keep(fds, preloaded)
        for fd in fds:
            os.close(fd)
        answer(control, pid)


class _Keeper:
    """The first process of an activity, and everything that it started."""

    def __init__(self, control):
        self._control = control
        prctl(descendants.PR_SET_CHILD_SUBREAPER, 1)
        # Tried, because a kernel can know the call and not enforce it.
        self._has_domain = landlock.scope_signals() and landlock.refuses_signals_to(os.getppid())
        self._status = None
        self._first = 0
        # A handler, so that a signal interrupts the wait for the broker.
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())

    def fork_first(self):
        """Forks the first process. Returns 0 in it."""
        try:
            self._first = os.fork()
        except OSError:
            self._first = -1
        if self._first == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            if self._has_domain:
                landlock.scope_signals()  # a domain within that of the keeper, which it cannot signal
        return self._first

    def serve(self):
        """Tells the broker the pid, and obeys it until the activity is over. Never returns."""
        self._control.send(struct.pack("=i?", self._first, self._has_domain))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
        while True:
            message = self._control.recv(16)
            if not message:
                os._exit(0)
            if message[:1] == b"K":
                gone = self._end()
                self._control.send(struct.pack("=i?", signal.SIGKILL if self._status is None else self._status, gone))
                os._exit(0)
            number, group = struct.unpack("=ii", message[1:9])
            self._signal(number, group)

    def _signal(self, number, group):
        if self._status is not None:
            return  # its number may be another process's by now
        try:
            os.killpg(group or self._first, number)
        except OSError:
            pass

    def _end(self):
        """Kills everything of the activity. Returns True when nothing is left."""
        deadline = time.monotonic() + END_SEC
        while True:
            if self._has_domain:
                _kill_all()  # in one pass of the kernel, and nobody outside
            else:
                for pid in descendants.find_living():
                    _kill(pid)
            if self._reap():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0003)

    def _reap(self):
        """Reaps what has ended. Returns True if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._first:
                self._status = status


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
    """Becomes the script or the program that the broker names. Never returns. `reserves` leaves processes to others."""
    code = 70
    try:
        child.become_a_script_process(fds)
        if reserves:
            _reserve_processes()
        runtime.rehearse()
        home_files = script_process.find_home_files()
        connection = _socket.socket(fileno=FRAME_FD)
        kind, received = receive_with_fds(connection, 1)
        connection.detach()
        # Not earlier: while this process waits, another activity could open its memory. Through that, it could read the request,
        # or change what this process does after that activity has ended.
        child.open_up()
        if kind == b"P":
            program.become(script_process.receive, received)
        elif kind:
            emitter = emit.Emitter(FRAME_FD)
            emit.use(emitter)
            script_process.copy_home_files(home_files)
            code = child.run(script_process.receive(), emitter, preloaded)
    except BaseException:
        code = 70
    os._exit(code)


def _reserve_processes():
    """Leaves slots to the zygote and to keepers, so that an activity that takes all others cannot keep the next one out."""
    soft, _ = child.resource.getrlimit(child.resource.RLIMIT_NPROC)
    if soft > 2 * RESERVED_PIDS:
        child.lower(child.resource.RLIMIT_NPROC, soft - RESERVED_PIDS, soft - RESERVED_PIDS)


def _kill_all():
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
