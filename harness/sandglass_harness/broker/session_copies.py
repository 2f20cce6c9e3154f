"""The copies of a session's process: one of the state after the last cell, one for each checkpoint, and those being forked."""

import os
import signal
import time

from ..caps import MAX_MISSING_ITEM_CHARS
from ..text import cut_head
from . import descriptors, integrity
from .session_process import SessionProcess

FORK_SEC = 5.0  # for a fork of a large process on a busy machine; then the copy has failed
MEMORY_SHARE = 0.45  # of the memory limit; beside a larger process, a copy and the changes of a cell would not fit
MAX_CHECKPOINTS = 32
MAX_WHY = 500  # characters of a reason that a process gives
NO_CHECKPOINT, UNKNOWN = "no_checkpoint", "the session has no such checkpoint"


class _Fork:
    """A copy that is being forked."""

    def __init__(self, process, done, failed):
        self.process, self.done, self.failed = process, done, failed
        self.due = time.monotonic() + FORK_SEC


class SessionCopies:
    """The copies of the session `owner`, which decides when they are made and used."""

    def __init__(self, owner):
        self._owner = owner
        self._last = None  # the state after the last cell
        self._behind = 0  # cells since that copy, if later forks failed
        self._coming = None  # the fork of the next one
        self.is_owed = False  # True if the next one is scheduled
        self._named = {}  # the copies of checkpoints, by id
        self._forks = []
        self.why_none = "no copy of its process was made yet"
        self._why_failed = None  # the fork after the last cell

    def processes(self):
        """Returns the processes of all copies, including those being forked."""
        last = [] if self._last is None else [self._last]
        return [*last, *self.named_processes(), *(fork.process for fork in self._forks)]

    def named_processes(self):
        """Returns the processes of checkpoints."""
        return list(self._named.values())

    def find_named(self, name):
        """Returns the copy of a checkpoint, or None."""
        return self._named.get(name)

    @property
    def is_coming(self):
        """True while the copy of the state after the last cell is being forked."""
        return self._coming is not None

    @property
    def due(self):
        """The time of the next call of advance(), or None."""
        return min((fork.due for fork in self._forks), default=None)

    def advance(self, now):
        """Fails the forks that take too long."""
        for fork in [fork for fork in self._forks if now >= fork.due]:
            self._fail(fork, f"its fork took longer than {FORK_SEC:g} s")

    # ── obstacles ───────────────────────────────────────────────────────────────────────────────────────────────

    def find_obstacle_of_last(self):
        """Returns the reason why no copy is made after a cell, or None."""
        if self._owner.workspace.copies_unavailable_reason is not None or self._owner.keeps_checkpoints:
            return self.find_obstacle()
        return "checkpoints are off"

    @property
    def doubt(self):
        """The reason why the next fork may fail, because that after the last cell did, or None."""
        why = self._why_failed
        return None if why is None else cut_head(f"no copy could be made after the last cell: {why}", MAX_MISSING_ITEM_CHARS)

    def find_obstacle(self):
        """Returns the reason why no copy can be made now, or None."""
        if self._owner.workspace.copies_unavailable_reason is not None:
            return self._owner.workspace.copies_unavailable_reason
        most = copyable_bytes(self._owner.memory_limit)
        if most and _uses_more_than(most, self._owner.head.pid):
            return f"the session uses more than {MEMORY_SHARE:.0%} of its memory limit"
        if not descriptors.are_left():
            return descriptors.NONE_LEFT
        return None

    # ── the copy of the state after the last cell ───────────────────────────────────────────────────────────────

    def owe(self):
        """Schedules a copy of the present state. Output for the host goes first, so that no result waits for a fork."""
        self.is_owed = True
        self._owner.workspace.after_flush(self._make_after_branches)

    def _make_after_branches(self):
        """Makes the scheduled copy. Waits while branches of the family start, because they share the CPUs."""
        if self.is_owed and self._owner.family.has_starting():
            self._owner.workspace.after_flush(self._make_after_branches)
        else:
            self.make_owed()

    def make_owed(self):
        """Makes the scheduled copy now. No cell and no rollback begins before it."""
        if not self.is_owed:
            return
        self.is_owed = False
        if not self._owner.is_ready:
            return
        self._renew_last()
        if not self.is_coming:
            self._owner.on_copy_settled()

    def _renew_last(self):
        """Replaces the last copy by one of the present state. The old one stays until the new one is ready, because the head may
        end first."""
        self._drop_coming()
        why = self.find_obstacle_of_last()
        if why is not None:
            self.drop_last()
            self.why_none = why
            return
        self._behind = 0 if self._last is None else self._behind + 1
        self._coming = self.fork(self._owner.head, self._on_last, self._on_last_failed)

    def take_last(self):
        """Hands the last copy, or None, over to the caller. Also returns a list with at most one sentence about what it lacks."""
        copy, behind = self._last, self._behind
        if copy is None or not copy.is_alive():
            return None, []
        self._last, self._behind = None, 0
        if not behind:
            return copy, []
        lacking = f"the changes of {behind} earlier cells: no copy could be made after them: {self.why_none}"
        return copy, [cut_head(lacking, MAX_MISSING_ITEM_CHARS)]

    def drop_last(self):
        """Ends the last copy, and the one being forked."""
        self.drop(self._last)
        self._last, self._behind, self._why_failed = None, 0, None
        self._drop_coming()

    def give_up_coming(self, why):
        """Fails the fork of the copy of the state after the last cell."""
        self._fail(self._coming, why)

    def _drop_coming(self):
        if self._coming is not None:
            self._forks.remove(self._coming)
            self.drop(self._coming.process)
            self._coming = None

    def _on_last(self, copy):
        self.drop(self._last)
        self._last, self._behind, self._coming, self._why_failed = copy, 0, None, None
        self.why_none = "the copy of its process is gone"
        self._owner.on_copy_settled()

    def _on_last_failed(self, why):
        self._coming, self.why_none, self._why_failed = None, why, why
        self._owner.on_copy_settled()

    # ── the copies of checkpoints ───────────────────────────────────────────────────────────────────────────────

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
            if self._owner.is_ending_processes:  # the order to the keeper does not name the copy, which therefore ends
                self.drop(copy)
                operation.fail(NO_CHECKPOINT, "the process of the session ended meanwhile")
                return
            self._named[operation.id] = copy
            operation.succeed(holds)

        self.fork(self._owner.head, on_copy, lambda why: operation.fail(NO_CHECKPOINT, why), stays=True)

    def release(self, name):
        """Ends the copy of a checkpoint. Returns False if there is none."""
        copy = self._named.pop(name, None)
        self.drop(copy)
        return copy is not None

    # ── forks ───────────────────────────────────────────────────────────────────────────────────────────────────

    def fork(self, source, done, failed, stays=False):
        """Asks the process `source` to fork a copy of itself; `stays` marks a checkpoint or a branch. Calls `done(copy)` or
        `failed(why)`. Returns the fork."""
        process = SessionProcess()
        self._owner.listen(process)
        source.tell(b"F", {"stays": stays}, fds=process.ends)
        process.close_ends()
        fork = _Fork(process, done, failed)
        self._forks.append(fork)
        return fork

    def on_end(self, process):
        """Called when the socket of a process is closed."""
        fork = self._fork_of(process)
        if fork is not None:
            self._fail(fork, "its copy ended at once")

    def take_message(self, process, kind, content, pid):
        """Handles a message of a process. Returns False if the process is not being forked."""
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
        """Accepts a copy whose pid comes from the kernel."""
        process = fork.process
        try:
            process.pid_fd = os.pidfd_open(pid)
        except (OSError, ValueError, OverflowError):
            self._fail(fork, "its copy ended at once")
            return
        process.pid = pid
        family = self._owner.family
        known = {each.pid for member in family.members for each in member.processes() if each is not process}
        # Any holder of the socket can answer, but a process of another activity must not pass for one of this session.
        if integrity.status_field(pid, "PPid") != str(family.spare.keeper_pid) or pid in known or not process.is_alive():
            self._fail(fork, "another process answered for its copy")
            return
        self._forks.remove(fork)
        fork.done(process)

    def _fail(self, fork, why):
        self._forks.remove(fork)
        self.drop(fork.process)
        fork.failed(why)


def copyable_bytes(memory_limit):
    """Returns the memory in bytes beyond which no copy of a process is made; None without a limit."""
    return int(memory_limit * MEMORY_SHARE) if memory_limit else None


def _uses_more_than(size, pid):
    """True if a process has more than `size` bytes of anonymous and shared memory."""
    resident = integrity.resident_memory(pid)  # mapped files included; the kernel needs a third of the time for it
    return (resident is None or resident > size) and _memory_of(pid) > size


def _memory_of(pid):
    """Returns the anonymous and shared memory of a process in bytes; 0 if the kernel does not show it."""
    total = 0
    for field in integrity.status_fields(pid, ("RssAnon", "RssShmem")):
        words = (field or "0 kB").split()
        total += int(words[0]) * 1024 if words[0].isdigit() else 0
    return total
