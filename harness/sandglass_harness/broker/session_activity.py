"""A session, from its start to its end: its head, the process that runs cells one after the other, and what the head says."""

import os
import time

from ..text import cut_head
from . import descriptors
from .activity import ProcessActivity
from .cell_activity import LOST, ROLLED_BACK
from .ending import ending_of
from .run import checkpoint_of
from .session_copies import MAX_WHY, SessionCopies, copyable_bytes
from .session_family import SessionFamily, mark_of_root
from .session_files import SessionFiles
from .session_operations import SessionLook
from .session_process import SessionProcess
from .session_rollback import MARGIN_SEC, SessionRollback
from .session_step import ADOPTING, AWAITING, KILLING, MAX_KILL_SEC, START_SEC, STARTING, WHY_ENDED, WHY_LATE, SessionStep

END_APART_SEC = 0.7  # for the keeper to end one of several sessions
MAX_UNEXPECTED = 1000  # messages that are no answer to a command
LOST_CODE = "lost"
LOST_KEEPER = "the process that owns its processes ended"


class SessionActivity(ProcessActivity):
    """A session, from its first process to the confirmed end of all its processes. It trusts nothing that they send."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self.head = self.family = None
        self.step, self.copies, self.rollback = SessionStep(), SessionCopies(self), SessionRollback(self)
        self.mark = mark_of_root()
        self.cell = self.operation = None  # the current ones
        self.files = SessionFiles(self)
        self.checkpoint = {"grade": "whole", "lacks": []}  # what a rollback would restore
        self._present = self.checkpoint  # what a copy of the present state would hold
        self._lost = None  # why the session ended by itself
        self._warnings = []  # for the next cell
        self._unexpected = 0

    @property
    def keeps_checkpoints(self):
        """True if a copy is made after each cell."""
        return self.frame["checkpoints"]

    @property
    def memory_limit(self):
        """The memory limit of the sandbox, or None."""
        return self.frame.get("memory_bytes")

    def processes(self):
        """Returns its processes that wait or run cells."""
        return [*(each for each in (self.head, self.rollback.target) if each is not None), *self.copies.processes()]

    @property
    def due(self):
        if self.is_ending:
            return self._end_due
        return min((due for due in (self.step.due, self.copies.due) if due is not None), default=None)

    def advance(self, now):
        if self.is_ending:
            self.check_end(now)
            return
        self.copies.advance(now)
        step = self.step
        if step.due is not None and now >= step.due:
            if step.name == KILLING and self.spare.has_answered():  # while the broker was busy with other activities
                self.family.on_keeper()
            elif step.name in (STARTING, ADOPTING) and self.head.has_message():  # likewise
                self._on_message(self.head)
            elif step.name == AWAITING and self.copies.is_coming:
                self.copies.give_up_coming(WHY_LATE[AWAITING])
            else:
                self.end_as_lost(WHY_LATE[step.name])

    def begin(self, spare):
        self.family = SessionFamily(spare)
        self.join(self.family)
        spare.watch(self.workspace.watcher, self.family.on_keeper)
        # The session uses its pipes for output until another process becomes the head.
        head = SessionProcess(os.dup(spare.out_fd), os.dup(spare.err_fd))
        head.pid, head.pid_fd = spare.pid, None if spare.pid_fd is None else os.dup(spare.pid_fd)
        spare.become(b"C", head.ends)
        head.close_ends()
        head.tell(b"B", {"limits": self.frame["limits"], "copyable_bytes": copyable_bytes(self.memory_limit)})
        self.listen(head)
        self.head = head
        self.watch_head_end()
        self.step.enter(STARTING, START_SEC)

    def join(self, family):
        """Joins the sessions of a keeper."""
        self.family, self.spare = family, family.spare
        family.members.append(self)

    # ── for cells and operations ────────────────────────────────────────────────────────────────────────────────

    def find_problem_of_cell(self):
        """Returns (code, message) of the problem that prevents a cell from starting, or None."""
        if self.is_ending:
            return "request", "the session is ending" if self._lost is None else f"the session is ending: {self._lost}"
        if self.head is None or self.step.name == STARTING:
            return "request", "the session is still starting"
        return None if self.is_free() else ("request", "another cell or an operation of the session is under way")

    def is_free(self):
        """True if neither a cell nor an operation runs."""
        return self.cell is None and self.operation is None and not self.is_ending and self.head is not None

    @property
    def is_ready(self):
        """True if a cell can begin at once."""
        return self.step.name is None and not self.is_ending

    @property
    def is_ending_processes(self):
        """True while the keeper ends processes for a rollback."""
        return self.step.name == KILLING

    @property
    def is_settled(self):
        """True if an operation can begin at once, because no copy is being made either."""
        return self.is_ready and not self.copies.is_coming and not self.copies.is_owed

    def prepare_cell(self):
        """Prepares the head for a cell, which watches the head from then on."""
        self.copies.make_owed()
        self.head.begin_cell()  # first, because it takes the longest to wake up
        self.workspace.watcher.forget(self.head.pid_fd)
        self.files.begin_cell()

    def on_kept(self, run):
        """Called when a cell has ended without a rollback."""
        self.note_state(run.checkpoint)

    def on_cell_over(self):
        """Called when the last frame of a cell has been sent."""
        if self.is_ending or self.step.name is not None:
            return
        self.workspace.channel.update_write_watch()  # at once, because the host waits for that frame
        self.watch_head_end()
        self.copies.owe()
        self.workspace.after_flush(self._prepare_next_cell)

    def _prepare_next_cell(self):
        if self.is_ready and descriptors.are_left():
            self.head.make_cell_socket()

    def take_warnings(self):
        """Returns the warnings about the time between two cells."""
        warnings, self._warnings = self._warnings, []
        self.rollback.forget_returns()
        return warnings

    def warn(self, code, message):
        """Adds a warning for the next cell."""
        self._warnings.append({"code": code, "message": message})

    def find_others(self):
        """Returns the pids of the processes of the other sessions of its keeper."""
        others = (member for member in self.family.members if member is not self)
        return [process.pid for member in others for process in member.processes() if process.pid is not None]

    def interrupt(self):
        """Interrupts the current cell, or the one that is about to run."""
        if self.cell is not None and not self.cell.is_ending:
            self.cell.interrupt()

    # ── its state ───────────────────────────────────────────────────────────────────────────────────────────────

    def note_state(self, holds):
        """Records what a copy of the present state would hold, and what a rollback to it would restore."""
        self._present = holds
        why = self.copies.find_obstacle_of_last() or self.copies.doubt
        self.checkpoint = holds if why is None else {"grade": "none", "lacks": [why]}

    def keep_copy(self, operation):
        """Keeps a copy of the present state as a checkpoint, and answers the operation."""
        self.copies.keep(operation, self._present)

    def on_copy_settled(self):
        """Called when the copy of the present state is ready or has failed."""
        if self.step.name == AWAITING:
            self.rollback.on_awaited_copy()
        elif self.operation is not None:
            self.operation.try_to_begin()

    def on_adopted(self):
        """Called when a copy has become the head."""
        cell, operation = self.cell, self.operation
        if cell is not None and cell.is_ending:
            cell.settle(ROLLED_BACK)
            return
        self.copies.owe()
        if cell is not None and cell.is_complete:  # the cell waited for the rollback
            cell.on_complete()
        elif operation is not None and operation.has_restored:
            restored = {"ended": self.rollback.ended, "missing": self.rollback.missing, "checkpoint": self.checkpoint}
            operation.succeed(restored)
        elif operation is not None:
            operation.try_to_begin()

    # ── its end ─────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, cause):
        if self.is_ending or self.spare is None:
            return
        if self.family.is_last(self):
            orders = self.family.orders
            self.family.expect(self._on_all_ended)
            super().end(cause)
            self._end_due += MAX_KILL_SEC * orders
            return
        self.killed_for = self.killed_for or cause
        self._end_due = time.monotonic() + END_APART_SEC + MARGIN_SEC + MAX_KILL_SEC * self.family.orders
        self.on_end_begun()
        try:
            self.family.ask_to_end_others(self, [], 0, END_APART_SEC, self._on_ended_apart)
        except OSError:
            self.on_lost_keeper()

    def _on_keeper(self):
        # Answers to earlier orders may come first, also for other sessions of the keeper.
        self.family.on_keeper()

    def _on_all_ended(self):
        super()._on_keeper()

    def _on_ended_apart(self):
        answer = self.spare.read_ended()
        if answer is None:
            self.on_lost_keeper()
            return
        status, gone, _ = answer
        self._end_due = float("inf")
        self.on_dead(status, gone)
        if not gone:
            self.workspace.end_sandbox()

    def on_lost_keeper(self):
        """Called when the keeper and all its processes are gone."""
        if self.is_over:
            return
        if not self.is_ending:
            self._lost = LOST_KEEPER
        self._on_lost_keeper()

    def on_end_begun(self):
        self.step.leave()
        watcher = self.workspace.watcher
        for process in self.processes():
            watcher.forget(process.control.fileno())
        if self.head is not None:
            watcher.forget(self.head.pid_fd)

    def on_dead(self, status, confirmed):
        if self._lost is not None or self.killed_for is not None:
            self.checkpoint = {"grade": "none", "lacks": [self._lost or "the session was ended"]}
        cell = self.cell
        if cell is not None:
            if cell.run is not None and self.killed_for is not None:
                cell.run.killed_for = cell.run.killed_for or self.killed_for
            cell.on_ended(status, confirmed)
            cell.settle(LOST)
        if self.operation is not None:
            self.operation.fail(LOST_CODE, self._lost or "the session was ended")
        for process in (self.head, self.rollback.target):
            if process is not None:
                process.close()
        self.copies.end("the session has ended")
        if self in self.family.members:
            self.family.members.remove(self)
        if not self.family.members:
            self.close_spare()
        error = None if self._lost is None else {"code": LOST_CODE, "message": self._lost}
        self.finish(ending_of(status, self.killed_for), error, None, confirmed)

    def end_as_lost(self, why):
        """Ends the session, because it cannot go on: there is no copy to go back to, or a step has failed."""
        if self.is_ending:
            return
        self._lost = why
        self.checkpoint = {"grade": "none", "lacks": [why]}  # also for a cell that comes before the end
        self.end(None)

    # ── its processes ───────────────────────────────────────────────────────────────────────────────────────────

    def listen(self, process):
        """Watches for messages of a process."""
        self.workspace.watcher.watch_read(process.control.fileno(), lambda _event: self._on_message(process))

    def watch_head_end(self):
        """Watches for the end of the head, which a cell does while it runs."""
        if self.head.pid_fd is not None:
            self.workspace.watcher.watch_read(self.head.pid_fd, lambda _event: self._on_head_end())

    def forget_head(self):
        """Closes the head, which has ended."""
        for fd in (self.head.control.fileno(), self.head.pid_fd):
            self.workspace.watcher.forget(fd)
        self.head.close()

    def _on_head_end(self):
        """Called when the head has ended while no cell ran."""
        self.workspace.watcher.forget(self.head.pid_fd)
        if self.step.name in (AWAITING, KILLING):  # a rollback ends the head anyway
            return
        if self.step.name is not None:
            self.end_as_lost(WHY_ENDED[self.step.name])
            return
        self.rollback.begin_after_end_of_head()

    def _on_message(self, process):
        message = process.read()
        if message is None:
            return
        kind, content, pid = message
        if not kind:
            self.workspace.watcher.forget(process.control.fileno())
            self.copies.on_end(process)
            if process is self.head and process.pid_fd is None and self.cell is None:
                self._on_head_end()
        elif self.copies.take_message(process, kind, content, pid):
            pass
        elif process is self.head and kind == b"R" and self.step.name == STARTING:
            self.step.leave()
            self.note_state(checkpoint_of(content))
            self.send({"type": "session_ready", "checkpoint": self.checkpoint})
            self.copies.owe()
        elif process is self.head and kind == b"X" and self.step.name == STARTING:
            self.end_as_lost(cut_head(content, MAX_WHY) if isinstance(content, str) else WHY_LATE[STARTING])
        elif process is self.head and kind == b"A" and self.step.name == ADOPTING:
            self.rollback.on_adopted(content)
        elif process is self.head and kind == b"G" and self.cell is not None and self.files.take(content):
            pass
        elif process is self.head and kind == b"V" and isinstance(self.operation, SessionLook) and self.operation.is_answer(content):
            self.operation.take(content)
        else:
            self._unexpected += 1
            if self._unexpected > MAX_UNEXPECTED:
                self.end_as_lost(f"its process sent the harness more than {MAX_UNEXPECTED} unexpected messages")
