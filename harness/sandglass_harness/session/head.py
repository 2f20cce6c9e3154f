"""The process that runs the cells of a session, and its copies, which wait meanwhile.

A head, a checkpoint and a branch have the same form: a process that waits for the broker's commands on its own socket. The
broker trusts nothing from these processes, because the script of a cell can change every line of this module.
"""

import _socket
import errno
import json
import os
import signal
import sys
import time

from ..caps import MAX_LISTED_NAMES
from ..libc import process_name, set_process_name
from ..script import child, descendants, emit, explain, host_tools, runtime, script_process
from ..script.commands import receive_with_fds
from ..script.script_process import FRAME_FD
from . import cell, cells, connections, descriptors, event_loops, file_limit, garbage, grades, output, own_files, proc, repairs, variables

CONTROL_FD = 4
HEAD_OOM, COPY_OOM = b"1000", b"500"  # the kernel kills a head before the copies that can replace it
MAX_COMMAND = 64 << 10


def begin(control_fd, preloaded):
    """Becomes the head of a session. Never returns."""
    _move(control_fd, CONTROL_FD)
    Head(_socket.socket(fileno=CONTROL_FD), preloaded).serve()


class Head:
    """Waits for commands, and executes one after the other. A copy of the process continues in the same loop."""

    def __init__(self, control, preloaded):
        self._control = control
        self._emitter = emit.Emitter(FRAME_FD)
        self._bridge = None
        emit.use(self._emitter)
        # SIGALRM belongs to the timers of cells, which last from cell to cell.
        emit.install_clock(signal.SIGRTMAX)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        base = runtime.base_names(preloaded.base_globals)
        for name, load in preloaded.loaders:
            try:
                load(base)
            except BaseException as error:
                self._give_up(f"{name} could not be loaded: {explain.describe_briefly(error)}")
        self._namespace = cells.Namespace(base)
        self._cells = cell.Cells(self._namespace, self._emitter, self._make_bridge, self._describe)
        self._garbage = garbage.Garbage()
        self._closed = []
        self._outputs = [connections.identity_of(fd) for fd in (1, 2)]
        self._noted = None  # recorded in the process that ran the last cell; a copy of a copy keeps it
        self._opened = ()  # as the copy recorded it that a rollback of the next cell returns to
        self._is_copy = False
        self._name = None  # of a copy: its process name before the fork
        self._pid = os.getpid()
        signal.signal(signal.SIGINT, emit.on_interrupt)
        self._control_identity = connections.identity_of(CONTROL_FD)
        os.register_at_fork(after_in_child=self._disconnect)

    def _give_up(self, why):
        """Reports why the session cannot start, and waits for the broker to end it: the broker must read the reason before the
        end."""
        self._answer(b"X", why)
        while self._control.recv(MAX_COMMAND):
            pass
        os._exit(1)

    def serve(self):
        """Executes the broker's commands until it is gone. Never returns."""
        while True:
            try:
                self._obey(*self._receive())
            except BaseException as error:  # from a signal handler that a cell installed
                sys.excepthook(type(error), error, None)
            self._end_fork()

    def _end_fork(self):
        """Ends this process if code of a cell has forked it: it neither obeys commands nor answers them."""
        if os.getpid() != self._pid:
            os._exit(0)

    def _receive(self):
        try:
            return receive_with_fds(self._control, MAX_COMMAND)
        except OSError as error:
            if error.errno in (errno.EBADF, errno.ENOTSOCK):  # a cell has closed the socket, so this process is unreachable
                os._exit(1)
            raise

    def _obey(self, message, fds):
        self._end_fork()
        kind = message[:1]
        if kind == b"E":
            self._take_frame_socket(fds)
            self._tell_changed_files()
            file_limit.restore()
            try:
                self._cells.run(script_process.receive())
            except BaseException as error:  # the broker would wait until the timeout
                self._end_fork()
                _end(f"the end of the cell cannot be reported: {explain.describe_briefly(error)}")
        elif kind == b"F":
            self._fork(fds, **json.loads(message[1:]))
        elif kind == b"H":
            self._take_over(**json.loads(message[1:]))
        elif kind == b"V":
            self._look(**json.loads(message[1:]))
        elif kind == b"B":
            self._start(json.loads(message[1:]))
        else:
            os._exit(0)

    def _start(self, request):
        for name in ("pids", "memory_bytes"):
            if request["limits"].get(name):
                which = child.resource.RLIMIT_NPROC if name == "pids" else child.resource.RLIMIT_AS
                child.lower(which, request["limits"][name], request["limits"][name])
        self._garbage.limit(request["copyable_bytes"])
        self._answer(b"R", grades.describe())

    def _describe(self):
        self._garbage.make_copyable()  # before the broker looks at the memory
        return grades.describe()

    # ── copies ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _fork(self, fds, stays):
        """Forks a copy, which continues in the same loop with the descriptors `fds`: socket for commands, stdout, stderr. Refuses
        a copy that `stays`, for a checkpoint or a branch, if it might wait forever once it is used."""
        if len(fds) < 3:  # the kernel drops those beyond the limit; the end of the socket tells the broker that no copy was made
            for fd in fds:
                os.close(fd)
            return
        try:
            deadly = grades.find_deadly() if stays else ()
            if deadly:
                _refuse_fork(fds, f"a copy would lack {', '.join(deadly)}, and may wait for them forever")
                return
            self._garbage.freeze()
            if not self._is_copy:
                self._noted = repairs.note(self._namespace)
                if not stays:
                    self._opened = self._noted.opened
            if self._fork_twice(fds, len(proc.list_names("/proc/self/task")) == 1):
                return
        except BaseException as error:
            _refuse_fork(fds, _describe_failure(error))
            return
        for fd in fds:
            os.close(fd)
        grades.note_outlived()
        if not self._is_copy and not self._has_command():
            self._find_changed_files()  # a rehearsal, too
            self._cells.rehearse()

    def _fork_twice(self, fds, is_alone):
        """Returns True in the copy. Its parent ends at once, so that the keeper adopts it and a cell that waits for its children
        does not see it."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        self._emitter.forks_write = False
        adopts = descendants.adopts_orphans()  # a cell can make this process adopt them, in place of the keeper
        if adopts:
            descendants.adopt(False)
        try:
            return self._fork_child(fds, is_alone)
        finally:
            if adopts:
                descendants.adopt(True)
            self._emitter.forks_write = True
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _fork_child(self, fds, is_alone):
        name = self._name if self._is_copy else process_name()
        set_process_name((descendants.COPY_PREFIX + name)[:15])  # before the fork, so that the copy is never mistaken for a program of a cell
        try:
            first = os.fork()
        except BaseException:
            set_process_name(name)
            raise
        if first == 0:
            self._name = name
            try:
                os.setsid()  # so that signals to the group of the head do not reach its copy
                child.set_oom_score(COPY_OOM)  # from its first moment: the next cell may run before the copy is done
                # Before the second fork, because the first process, in which cells close and lock files, waits until this one ends.
                own_files.make_own(self._noted.opened, self._emitter.lock_fd)
                if not self._is_copy:
                    self._noted.add_lacks(grades.find_outlived(self._pid))
                parent = os.getpid()
                if os.fork():
                    os._exit(0)
                self._become_copy(fds, parent, is_alone)
                return True
            except BaseException:
                os._exit(1)
        set_process_name(name)
        status = _wait_for(first)
        if signal.getsignal(signal.SIGCHLD) not in (signal.SIG_DFL, signal.SIG_IGN):
            signal.sigtimedwait((signal.SIGCHLD,), 0)  # discards the signal of a child that the cell does not know
        if status:
            raise OSError(errno.EAGAIN, "no copy was made")
        return False

    def _become_copy(self, fds, parent, is_alone):
        was_copy, self._is_copy = self._is_copy, True
        self._pid = os.getpid()
        os.setsid()
        control, out, err = [child.duplicate_above(fd, 16) for fd in fds]
        for fd in fds:
            os.close(fd)
        _move(control, CONTROL_FD)
        self._control_identity = connections.identity_of(CONTROL_FD)
        if is_alone:
            output.drop()
        else:
            output.renew()
        self._renew_connections(out, err, was_copy)
        self._emitter.separate()
        while os.getppid() == parent:
            time.sleep(0.000_05)
        self._answer(b"Y", None)

    def _renew_connections(self, out, err, was_copy):
        old, self._outputs = self._outputs, [connections.identity_of(fd) for fd in (out, err)]
        kept, replaced = {0, FRAME_FD, CONTROL_FD, out, err}, event_loops.find_replaced(self._namespace)
        closed = connections.close(kept, replaced, dict(zip(old, (out, err))), {1: out, 2: err})
        self._closed = self._closed if was_copy else closed
        os.close(out)
        os.close(err)

    def _has_command(self):
        """True if a command of the broker can be read."""
        try:
            self._control.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True

    def _look(self, code, cursor, asked_by):
        if code is None:
            found = {"variables": variables.describe(self._namespace)[:MAX_LISTED_NAMES]}
        else:
            found = {"names": variables.complete(self._namespace, code, cursor)[:MAX_LISTED_NAMES]}
        self._answer(b"V", {**found, "asked_by": asked_by})

    def _tell_changed_files(self):
        """Tells the broker which open files have changed since the last cell, so that a rollback of the next one keeps that."""
        changed = self._find_changed_files()
        if changed != []:
            self._answer(b"G", changed)

    def _find_changed_files(self):
        """Returns the open files that have changed since the last cell, None if they cannot be found."""
        try:
            return descriptors.find_changed(self._opened)
        except Exception:  # cells have changed Python
            return None

    def _take_over(self, mark, is_branch, changed, removes):
        """Becomes the head, with the state at the time of the fork. Programs inherit the mark, by which the keeper recognises this
        branch."""
        if mark is not None:
            child.lower(child.resource.RLIMIT_RTTIME, mark, mark)
        child.set_oom_score(HEAD_OOM)
        missing = repairs.apply(self._noted, self._namespace, changed, removes, is_branch) + connections.describe_closed(self._closed)
        self._is_copy = False
        set_process_name(self._name)
        self._answer(b"A", {"missing": grades.cut_items(missing), "checkpoint": grades.describe()})

    def _answer(self, kind, content):
        self._end_fork()
        # The kernel refuses a message that is too long, and an escape takes up to three times the bytes of its character.
        self._control.send(kind + json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def _take_frame_socket(self, fds):
        """Installs a new socket for each cell, so that no late frame of the last cell, in either direction, is mistaken for one of
        the next."""
        if not fds:
            _end("the cell cannot begin: the process of the session has no descriptor left")
        _move(fds[0], FRAME_FD)
        if self._bridge is not None:
            self._bridge.reset()

    def _disconnect(self):
        """Takes the socket for commands from a process that was forked. A copy gets one of its own."""
        try:
            if connections.identity_of(CONTROL_FD) != self._control_identity:  # this process has closed it, and has a file there
                return
            nothing = os.open(os.devnull, os.O_RDWR)  # in its place, so that no file gets its number
            os.dup2(nothing, CONTROL_FD, inheritable=False)
            os.close(nothing)
        except OSError:  # it is closed, or no descriptor is left
            pass

    def _make_bridge(self):
        if self._bridge is None:
            self._bridge = host_tools.Bridge(FRAME_FD, self._emitter)
        return self._bridge


def _end(why):
    """Ends this process, in which a cell has left too little to go on. The stderr of the cell says why."""
    os.write(2, f"{why}\n".encode(errors="backslashreplace"))
    os._exit(1)


def _refuse_fork(fds, why):
    """Reports why a copy was not made, on the socket that it would have had."""
    control = _socket.socket(fileno=fds[0])
    try:
        control.send(b"N" + json.dumps(why).encode())
    finally:
        control.close()
        for fd in fds[1:]:
            os.close(fd)


def _describe_failure(error):
    """Returns the reason why no copy was made. Cells can change every function that is called for it."""
    if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENOMEM):
        return "no process could be created for its copy: the limit of processes or of memory is reached"
    return f"its copy could not be made: {explain.describe_briefly(error)}"


def _wait_for(pid):
    """Returns the status of a child; 0 if the kernel does not keep it, because a cell ignores SIGCHLD, or has reaped it."""
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def _move(fd, target):
    """Moves a descriptor to another number. Programs do not inherit it."""
    if fd == target:
        os.set_inheritable(fd, False)
    else:
        os.dup2(fd, target, inheritable=False)
        os.close(fd)
