"""A session: its head, the process that runs cells one after the other, and the replacement of the head by a copy."""

import os
import time

from ..caps import MAX_MISSING_ITEMS
from ..text import cut_head
from .activity import ProcessActivity
from .cell_activity import LOST, ROLLED_BACK
from .ending import ending_of
from .run import checkpoint_of, texts_of
from .session_copies import MAX_WHY, NO_CHECKPOINT, UNKNOWN, SessionCopies
from .session_family import SessionFamily, mark_of_root
from .session_files import NO_CELL, SessionFiles
from .session_operations import SessionLook
from .session_process import SessionProcess

START_SEC = 20.0  # including modules and tool files that each run loads itself
KILL_SEC = 1.2  # for the keeper to end a fork bomb on a busy machine before a copy takes over
END_APART_SEC = 0.7  # for the keeper to end one of several sessions
MARGIN_SEC = 0.2  # for the answer of the keeper
AWAIT_SEC = 1.0  # for a copy that a rollback needs
MAX_KILL_SEC = KILL_SEC + AWAIT_SEC  # if no copy had to be awaited
ADOPT_SEC = 1.5  # for a copy to become the head
MAX_RETURNS = 5  # to a copy between two cells; a state that ends its process each time would use CPU time forever
MAX_UNEXPECTED = 1000  # messages that are no answer to a command
MAX_TOLD = 4000  # characters of a warning about the state; a list of what is missing may have 10,000
LOST_CODE = "lost"
LOST_KEEPER = "the process that owns its processes ended"
STARTING, AWAITING, KILLING, ADOPTING = "starting", "awaiting", "killing", "adopting"
_LATE = {
    STARTING: f"its process did not start within {START_SEC:g} s",
    AWAITING: f"the copy of its process was not ready within {AWAIT_SEC:g} s",
    KILLING: "the processes that a cell left running could not be ended in time",
    ADOPTING: f"the copy of its process did not answer within {ADOPT_SEC:g} s",
}
_ENDED = {STARTING: "its process ended before it was ready", ADOPTING: "the copy of its process ended before it answered"}


class SessionActivity(ProcessActivity):
    """A session, from its first process to the confirmed end of all its processes. It trusts nothing that they send."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self.head = self.family = None
        self.copies = SessionCopies(self)
        self.mark = mark_of_root()
        self._owes_copy = False
        self.cell = self.operation = None  # the current ones
        self.checkpoint = {"grade": "whole", "lacks": []}  # what a rollback would restore
        self._present = self.checkpoint  # what a copy of the present state would hold
        self.missing = []  # what the last rollback could not restore
        self._lacking = []  # during a rollback: a sentence about cells that the copy lacks
        self._head_ended = False  # True if the head ended while no cell ran
        self._step = self._step_due = self._target = None
        self._ended = []  # names of the processes that the last rollback ended
        self._files = SessionFiles(self)
        self._lost = None  # why the session ended by itself
        self._warnings = []  # for the next cell
        self._returns = 0  # since the last cell
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
        return [*(each for each in (self.head, self._target) if each is not None), *self.copies.processes()]

    @property
    def due(self):
        if self.is_ending:
            return self._end_due
        return min((due for due in (self._step_due, self.copies.due) if due is not None), default=None)

    def advance(self, now):
        if self.is_ending:
            self.check_end(now)
            return
        self.copies.advance(now)
        if self._step_due is not None and now >= self._step_due:
            if self._step == KILLING and self.spare.has_answered():  # while the broker was busy with other activities
                self.family.on_keeper()
            elif self._step in (STARTING, ADOPTING) and self.head.has_message():  # likewise
                self._on_message(self.head)
            elif self._step == AWAITING and self.copies.is_coming:
                self.copies.give_up_coming(_LATE[AWAITING])
            else:
                self._end_as_lost(_LATE[self._step])

    def begin(self, spare):
        self.family = SessionFamily(spare)
        self.join(self.family)
        spare.watch(self.workspace.watcher, self.family.on_keeper)
        # The session uses its pipes for output until another process becomes the head.
        head = SessionProcess(os.dup(spare.out_fd), os.dup(spare.err_fd))
        head.pid, head.pid_fd = spare.pid, None if spare.pid_fd is None else os.dup(spare.pid_fd)
        spare.become(b"C", head.ends)
        head.close_ends()
        head.tell(b"B", {"limits": self.frame["limits"]})
        self.listen(head)
        self.head = head
        self._watch_head_end()
        self._enter(STARTING, START_SEC)

    def join(self, family):
        """Joins the sessions of a keeper."""
        self.family, self.spare = family, family.spare
        family.members.append(self)

    # ── for cells and operations ────────────────────────────────────────────────────────────────────────────────

    def find_problem_of_cell(self):
        """Returns (code, message) of the problem that prevents a cell from starting, or None."""
        if self.is_ending:
            return "request", "the session is ending" if self._lost is None else f"the session is ending: {self._lost}"
        if self.head is None or self._step == STARTING:
            return "request", "the session is still starting"
        return None if self.is_free() else ("request", "another cell or an operation of the session is under way")

    def is_free(self):
        """True if neither a cell nor an operation runs."""
        return self.cell is None and self.operation is None and not self.is_ending and self.head is not None

    @property
    def is_ready(self):
        """True if a cell can begin at once."""
        return self._step is None and not self.is_ending

    @property
    def is_ending_processes(self):
        """True while the keeper ends processes for a rollback."""
        return self._step == KILLING

    @property
    def is_settled(self):
        """True if an operation can begin at once, because no copy is being made either."""
        return self.is_ready and not self.copies.is_coming and not self._owes_copy

    def prepare_cell(self):
        """Prepares the head for a cell, which watches the head from then on."""
        self._make_owed_copy()
        self.workspace.watcher.forget(self.head.pid_fd)
        self._files.begin_cell()
        self.head.begin_cell()

    def on_kept(self, run):
        """Called when a cell has ended without a rollback."""
        self._note_state(run.checkpoint)

    def _note_state(self, holds):
        """Records what a copy of the present state would hold, and what a rollback to it would restore."""
        self._present = holds
        why = self.copies.find_obstacle_of_last()
        self.checkpoint = holds if why is None else {"grade": "none", "lacks": [why]}

    def on_cell_over(self):
        """Called when the last frame of a cell has been sent."""
        if self.is_ending or self._step is not None:
            return
        self._watch_head_end()
        self._owe_copy()

    def take_warnings(self):
        """Returns the warnings about the time between two cells."""
        warnings, self._warnings = self._warnings, []
        self._returns = 0
        return warnings

    def find_others(self):
        """Returns the pids of the processes of the other sessions of its keeper."""
        others = (member for member in self.family.members if member is not self)
        return [process.pid for member in others for process in member.processes() if process.pid is not None]

    def interrupt(self):
        """Interrupts the current cell, or the one that is about to run."""
        if self.cell is not None and not self.cell.is_ending:
            self.cell.interrupt()

    # ── back to a copy ──────────────────────────────────────────────────────────────────────────────────────────

    def _owe_copy(self):
        """Schedules a copy of the present state. Output for the host goes first, so that no result waits for a fork."""
        self._owes_copy = True
        self.workspace.after_flush(self._make_copy_after_branches)

    def _make_copy_after_branches(self):
        """Makes the scheduled copy. Waits while branches of the family start, because they share the CPUs."""
        if self._owes_copy and self.family.has_starting():
            self.workspace.after_flush(self._make_copy_after_branches)
        else:
            self._make_owed_copy()

    def _make_owed_copy(self):
        """Makes the scheduled copy now. No cell and no rollback begins before it."""
        if not self._owes_copy:
            return
        self._owes_copy = False
        if self.is_ending or self._step is not None:
            return
        self.copies.renew_last()
        if not self.copies.is_coming:
            self.on_copy_settled()

    def roll_back(self):
        """Goes back to the last copy: the state before the cell, or after it if the head ended between two cells."""
        self._make_owed_copy()
        if self.copies.is_coming:  # the copy was forked before the cell began
            self._enter(AWAITING, AWAIT_SEC)
        else:
            self._roll_back_to_copy(MAX_KILL_SEC)

    def _roll_back_to_copy(self, kill_sec):
        copy, lacking = self.copies.take_last()
        if copy is None:
            why = self.copies.why_none
            self._end_as_lost(f"its process ended between two cells, and there was no checkpoint: {why}" if self._head_ended else why)
            return
        self._lacking = lacking
        self._roll_back_to(copy, kill_sec)

    def on_copy_settled(self):
        """Called when the copy of the present state is ready or has failed."""
        if self._step == AWAITING:
            left = max(0.0, self._step_due - time.monotonic())
            self._leave_step()
            self._roll_back_to_copy(KILL_SEC + left)
        elif self.operation is not None:
            self.operation.try_to_begin()

    def keep_copy(self, operation):
        """Keeps a copy of the present state as a checkpoint, and answers the operation."""
        self.copies.keep(operation, self._present)

    def restore(self, name, operation):
        """Restores the state of a checkpoint, and answers the operation."""
        named = self.copies.find_named(name)
        if named is None or not named.is_alive():
            operation.fail(NO_CHECKPOINT, UNKNOWN)
            return

        def on_copy(copy):
            if operation.is_over:
                self.copies.drop(copy)
            elif not self.is_ready:
                self.copies.drop(copy)
                operation.fail(NO_CHECKPOINT, "the process of the session ended meanwhile")
            else:
                operation.has_restored = True
                self._roll_back_to(copy, MAX_KILL_SEC)

        self.copies.fork(named, on_copy, lambda why: operation.fail(NO_CHECKPOINT, why))

    def _roll_back_to(self, target, kill_sec):
        """Ends every process except the kept copies, within `kill_sec`. `target` then becomes the head."""
        self._target = target
        self._enter(KILLING, MAX_KILL_SEC * self.family.orders + kill_sec + MARGIN_SEC)
        kept = [target.pid, *(process.pid for process in self.copies.named_processes())]
        try:
            self.family.ask_to_end_others(self, kept, target.pid, kill_sec, self._on_ended)
        except OSError:
            self.on_lost_keeper()

    def _on_ended(self):
        answer = self.spare.read_ended()
        if answer is None:
            self.on_lost_keeper()
            return
        if self.is_ending:
            return
        status, gone, names = answer
        if not gone:
            self._end_as_lost(_LATE[KILLING])
            return
        self._ended = texts_of(names)
        if self.cell is not None and self.cell.run is not None:
            self.cell.on_ended(status, True, self._ended)
        self._forget_head()
        self.copies.drop_last()
        self.head, self._target = self._target, None
        self.take_over_head()

    def take_over_head(self, is_branch=False):
        """Makes a copy the head."""
        self._watch_head_end()
        self._enter(ADOPTING, ADOPT_SEC + MAX_KILL_SEC * self.family.orders)
        mark = None if self.mark == mark_of_root() else self.mark
        is_of_cell = self.cell is not None and self.cell.is_ending and not self._lacking
        files = self._files.before_cell() if is_of_cell else NO_CELL
        self.head.tell(b"H", {"mark": mark, "is_branch": is_branch, **files})

    def _on_adopted(self, content):
        self._leave_step()
        fields = content if isinstance(content, dict) else {}
        lacking, self._lacking = self._lacking, []
        missing = texts_of(fields.get("missing"))
        self.missing = [*lacking, *missing][:MAX_MISSING_ITEMS]
        if self._head_ended:
            self._head_ended = False
            self._warnings.append({"code": "session_rolled_back", "message": _message_of_lost_head(lacking, missing)})
        self._note_state(checkpoint_of(fields.get("checkpoint")))
        self.on_adopted()

    def on_adopted(self):
        """Called when a copy has become the head."""
        cell, operation = self.cell, self.operation
        if cell is not None and cell.is_ending:
            cell.settle(ROLLED_BACK)
            return
        self._owe_copy()
        if cell is not None and cell.is_complete:  # the cell waited for the rollback
            cell.on_complete()
        elif operation is not None and operation.has_restored:
            operation.succeed({"ended": self._ended, "missing": self.missing, "checkpoint": self.checkpoint})
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
        self._leave_step()
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
        for process in (self.head, self._target):
            if process is not None:
                process.close()
        self.copies.end("the session has ended")
        if self in self.family.members:
            self.family.members.remove(self)
        if not self.family.members:
            self.close_spare()
        error = None if self._lost is None else {"code": LOST_CODE, "message": self._lost}
        self.finish(ending_of(status, self.killed_for), error, None, confirmed)

    def _end_as_lost(self, why):
        """Ends the session, because there is no copy to go back to."""
        if self.is_ending:
            return
        self._lost = why
        self.checkpoint = {"grade": "none", "lacks": [why]}  # also for a cell that comes before the end
        self.end(None)

    # ── its processes ───────────────────────────────────────────────────────────────────────────────────────────

    def _enter(self, step, seconds):
        self._step, self._step_due = step, time.monotonic() + seconds

    def _leave_step(self):
        self._step = self._step_due = None

    def listen(self, process):
        """Watches for messages of a process."""
        self.workspace.watcher.watch_read(process.control.fileno(), lambda _event: self._on_message(process))

    def _watch_head_end(self):
        if self.head.pid_fd is not None:
            self.workspace.watcher.watch_read(self.head.pid_fd, lambda _event: self._on_head_end())

    def _forget_head(self):
        for fd in (self.head.control.fileno(), self.head.pid_fd):
            self.workspace.watcher.forget(fd)
        self.head.close()

    def _on_head_end(self):
        """Called when the head has ended while no cell ran."""
        self.workspace.watcher.forget(self.head.pid_fd)
        if self._step in (AWAITING, KILLING):  # a rollback ends the head anyway
            return
        if self._step is not None:
            self._end_as_lost(_ENDED[self._step])
            return
        self._returns += 1
        if self._returns > MAX_RETURNS:
            self._end_as_lost("its process ended again each time it had gone back to a copy")
            return
        self._head_ended = True
        self.roll_back()

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
        elif process is self.head and kind == b"R" and self._step == STARTING:
            self._leave_step()
            self._note_state(checkpoint_of(content))
            self.send({"type": "session_ready", "checkpoint": self.checkpoint})
            self._owe_copy()
        elif process is self.head and kind == b"X" and self._step == STARTING:
            self._end_as_lost(cut_head(content, MAX_WHY) if isinstance(content, str) else _LATE[STARTING])
        elif process is self.head and kind == b"A" and self._step == ADOPTING:
            self._on_adopted(content)
        elif process is self.head and kind == b"G" and self.cell is not None and self._files.take(content):
            pass
        elif process is self.head and kind == b"V" and isinstance(self.operation, SessionLook) and self.operation.is_answer(content):
            self.operation.take(content)
        else:
            self._unexpected += 1
            if self._unexpected > MAX_UNEXPECTED:
                self._end_as_lost(f"its process sent the harness more than {MAX_UNEXPECTED} unexpected messages")


def _message_of_lost_head(lacking, missing):
    """Returns the warning for a session whose process ended while no cell ran."""
    went_back = "to the state after it" if not lacking else f"to an earlier state, which lacks {lacking[0]}"
    rest = f"; this could not be restored: {'; '.join(missing)}" if missing else ""
    return cut_head(f"the process of the session ended after the last cell; the session went back {went_back}{rest}", MAX_TOLD)
