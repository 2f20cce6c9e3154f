"""The copies of a session's process: one of the state after the last cell, one for each checkpoint, and those that are being made."""

import os
import signal
import time

from ..text import cut_head
from . import descriptors, integrity
from .session_process import SessionProcess

FORK_SEC = 5.0  # for a fork of a large process on a busy machine; after it the copy is given up
MEMORY_SHARE = 0.45  # of the memory limit: with a larger process, a copy and the changes of a cell would not fit
MAX_CHECKPOINTS = 32
MAX_WHY = 500  # characters of a reason that a process gives
NO_CHECKPOINT, UNKNOWN = "no_checkpoint", "the session has no such checkpoint"


class _Fork:
    """A copy that is being made."""

    def __init__(self, process, done, failed):
        self.process, self.done, self.failed = process, done, failed
        self.due = time.monotonic() + FORK_SEC


class SessionCopies:
    """The copies of the session `owner`, which decides when they are made and used."""

    def __init__(self, owner):
        self._owner = owner
        self._last = None  # the state after the last cell
        self._behind = 0  # cells after that copy, because the head could not make another one
        self._coming = None  # the fork that makes the next one
        self._named = {}  # the copies that stay, by the id of their checkpoint
        self._forks = []
        self.why_none = "no copy of its process was made yet"

    def processes(self):
        """Returns all of them, and those that are being made."""
        last = [] if self._last is None else [self._last]
        return [*last, *self.named_processes(), *(fork.process for fork in self._forks)]

    def named_processes(self):
        """Returns those of checkpoints."""
        return list(self._named.values())

    def find_named(self, name):
        """Returns the copy of a checkpoint, or None."""
        return self._named.get(name)

    @property
    def is_coming(self):
        """True while the copy of the state after the last cell is being made."""
        return self._coming is not None

    @property
    def due(self):
        """The time of the next call of advance(), or None."""
        return min((fork.due for fork in self._forks), default=None)

    def advance(self, now):
        """Gives up the forks that take too long."""
        for fork in [fork for fork in self._forks if now >= fork.due]:
            self._fail(fork, "its fork took too long")

    # ── what keeps one from being made ──────────────────────────────────────────────────────────────────────────

    def find_obstacle_of_last(self):
        """Returns why no copy is made after a cell, or None."""
        if self._owner.workspace.why_no_copies is not None or self._owner.keeps_checkpoints:
            return self.find_obstacle()
        return "checkpoints are off"

    def find_obstacle(self):
        """Returns why no copy can be made now, or None."""
        if self._owner.workspace.why_no_copies is not None:
            return self._owner.workspace.why_no_copies
        limit = self._owner.memory_limit
        if limit and _memory_of(self._owner.head.pid) > limit * MEMORY_SHARE:
            return f"the session uses more than {MEMORY_SHARE:.0%} of its memory limit"
        if not descriptors.are_left():
            return "the activities of the workspace use all of its descriptors"
        return None

    # ── of the state after the last cell ────────────────────────────────────────────────────────────────────────

    def renew_last(self):
        """Replaces the last copy by one of the present state. The old one stays until the new one is there: the head may end before."""
        self._drop_coming()
        why = self.find_obstacle_of_last()
        if why is not None:
            self.drop_last()
            self.why_none = why
            return
        self._behind = 0 if self._last is None else self._behind + 1
        self._coming = self.fork(self._owner.head, self._on_last, self._drop_last)

    def take_last(self):
        """Returns the copy, which the caller owns then, or None; and a list with at most one sentence about what it lacks."""
        copy, behind = self._last, self._behind
        if copy is None or not copy.is_alive():
            return None, []
        self._last, self._behind = None, 0
        return copy, [f"the changes of {behind} earlier cells: no copy could be made after them"] if behind else []

    def drop_last(self):
        """Ends the last copy, and gives up the one that is being made."""
        self.drop(self._last)
        self._last, self._behind = None, 0
        self._drop_coming()

    def give_up_coming(self, why):
        """Gives up the copy of the state after the last cell, which is being made."""
        self._fail(self._coming, why)

    def _drop_coming(self):
        if self._coming is not None:
            self._forks.remove(self._coming)
            self.drop(self._coming.process)
            self._coming = None

    def _on_last(self, copy):
        self.drop(self._last)
        self._last, self._behind, self._coming = copy, 0, None
        self.why_none = "the copy of its process is gone"
        self._owner.on_copy_settled()

    def _drop_last(self, why):
        self._coming, self.why_none = None, why
        self._owner.on_copy_settled()

    # ── of checkpoints ──────────────────────────────────────────────────────────────────────────────────────────

    def keep(self, operation, holds):
        """Keeps a copy of the present state under the id of the operation, and answers it with what the copy holds."""
        why = self.find_obstacle()
        if len(self._named) >= MAX_CHECKPOINTS:
            why = f"the session has {MAX_CHECKPOINTS} checkpoints already; release() ends one"
        if why is not None:
            operation.fail(NO_CHECKPOINT, why)
            return

        def on_copy(copy):
            if operation.is_over:
                self.drop(copy)
                return
            self._named[operation.id] = copy
            operation.succeed(holds)

        self.fork(self._owner.head, on_copy, lambda why: operation.fail(NO_CHECKPOINT, why), stays=True)

    def release(self, name):
        """Ends the copy of a checkpoint. Returns False if there is none."""
        copy = self._named.pop(name, None)
        self.drop(copy)
        return copy is not None

    # ── how they are made ───────────────────────────────────────────────────────────────────────────────────────

    def fork(self, source, done, failed, stays=False):
        """Asks the process `source` for a copy of itself; with `stays`, for a checkpoint or a branch. Calls `done(copy)` or
        `failed(why)`. Returns the fork."""
        process = SessionProcess()
        self._owner.listen(process)
        source.tell(b"F", {"stays": stays}, fds=process.ends)
        process.close_ends()
        fork = _Fork(process, done, failed)
        self._forks.append(fork)
        return fork

    def on_end(self, process):
        """The socket of a process has ended."""
        fork = self._fork_of(process)
        if fork is not None:
            self._fail(fork, "its copy ended at once")

    def take_message(self, process, kind, content, pid):
        """Takes a message of a process. Returns False if it is not about a copy that is being made."""
        fork = self._fork_of(process)
        if fork is not None and kind == b"Y":
            self._accept(fork, pid)
        elif fork is not None and kind == b"N":
            self._fail(fork, cut_head(content, MAX_WHY) if isinstance(content, str) else "its copy was not made")
        return fork is not None

    def drop(self, process):
        """Ends a copy."""
        if process is not None:
            self._owner.workspace.watcher.forget(process.control.fileno())
            process.signal(signal.SIGKILL)
            process.close()

    def end(self, why):
        """Closes all copies. Their processes have ended."""
        processes, forks, self._forks = self.processes(), self._forks, []
        for process in processes:
            process.close()
        for fork in forks:
            fork.failed(why)

    def _fork_of(self, process):
        return next((fork for fork in self._forks if fork.process is process), None)

    def _accept(self, fork, pid):
        """Accepts the pid of a copy, which comes from the kernel."""
        process = fork.process
        try:
            process.pid_fd = os.pidfd_open(pid)
        except (OSError, ValueError, OverflowError):
            self._fail(fork, "its copy ended at once")
            return
        process.pid = pid
        family = self._owner.family
        known = {each.pid for member in family.members for each in member.processes() if each is not process}
        # Whoever has the socket can answer: a process of another activity must not pass for one of this session.
        if integrity.status_field(pid, "PPid") != str(family.spare.keeper_pid) or pid in known or not process.is_alive():
            self._fail(fork, "another process answered for its copy")
            return
        self._forks.remove(fork)
        fork.done(process)

    def _fail(self, fork, why):
        self._forks.remove(fork)
        self.drop(fork.process)
        fork.failed(why)


def _memory_of(pid):
    """Returns the bytes of memory that are a process's own, if the kernel shows them."""
    total = 0
    for field in integrity.status_fields(pid, ("RssAnon", "RssShmem")):
        words = (field or "0 kB").split()
        total += int(words[0]) * 1024 if words[0].isdigit() else 0
    return total
