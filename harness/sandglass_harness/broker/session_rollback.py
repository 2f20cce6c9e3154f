"""The rollbacks of a session: a copy becomes its head, after every other process has ended that the session started since."""

import time

from ..caps import MAX_MISSING_ITEMS
from ..text import cut_head
from .run import checkpoint_of, texts_of
from .session_copies import NO_CHECKPOINT, UNKNOWN
from .session_family import mark_of_root
from .session_files import NO_CELL
from .session_step import ADOPT_SEC, ADOPTING, AWAIT_SEC, AWAITING, KILL_SEC, KILLING, MAX_KILL_SEC, WHY_LATE

MARGIN_SEC = 0.2  # for the answer of the keeper
MAX_RETURNS = 5  # to a copy between two cells; a state that ends its process each time would use CPU time forever
MAX_TOLD = 4000  # characters of a warning about the state; a list of what is missing may have 10,000


class SessionRollback:
    """The current or last rollback of the session `owner`: of a cell, to a checkpoint, or because the head ended between two cells."""

    def __init__(self, owner):
        self._owner = owner
        self.target = None  # the copy that becomes the head once the other processes have ended
        self.ended = []  # names of the processes that it ended
        self.missing = []  # what it could not restore
        self._lacking = []  # while it runs: a sentence about cells that the copy lacks
        self._head_ended = False  # True if it runs because the head ended while no cell ran
        self.returns = 0  # for that reason, since the last cell

    # ── its reasons ─────────────────────────────────────────────────────────────────────────────────────────────

    def forget_returns(self):
        """Forgets how often the session has gone back, because a cell has been told of it."""
        self.returns = 0

    def begin(self):
        """Goes back to the last copy: the state before the cell, or after it if the head ended between two cells."""
        self._owner.copies.make_owed()
        if self._owner.copies.is_coming:  # the copy was forked before the cell began
            self._owner.step.enter(AWAITING, AWAIT_SEC)
        else:
            self._begin_with_last(MAX_KILL_SEC)

    def begin_after_end_of_head(self):
        """Goes back to the last copy, because the head has ended while no cell ran."""
        self.returns += 1
        if self.returns > MAX_RETURNS:
            self._owner.end_as_lost("its process ended again each time it had gone back to a copy")
            return
        self._head_ended = True
        self.begin()

    def restore(self, name, operation):
        """Restores the state of a checkpoint, and answers the operation."""
        session = self._owner
        named = session.copies.find_named(name)
        if named is None or not named.is_alive():
            operation.fail(NO_CHECKPOINT, UNKNOWN)
            return

        def on_copy(copy):
            if operation.is_over:
                session.copies.drop(copy)
            elif not session.is_ready:
                session.copies.drop(copy)
                operation.fail(NO_CHECKPOINT, "the process of the session ended meanwhile")
            else:
                operation.has_restored = True
                self._begin_with(copy, MAX_KILL_SEC)

        session.copies.fork(named, on_copy, lambda why: operation.fail(NO_CHECKPOINT, why))

    # ── its steps ───────────────────────────────────────────────────────────────────────────────────────────────

    def on_awaited_copy(self):
        """Called when the copy that it awaits is ready or has failed."""
        step = self._owner.step
        left = max(0.0, step.due - time.monotonic())
        step.leave()
        self._begin_with_last(KILL_SEC + left)

    def _begin_with_last(self, kill_sec):
        copy, lacking = self._owner.copies.take_last()
        if copy is None:
            why = self._owner.copies.why_none
            ended = f"its process ended between two cells, and there was no checkpoint: {why}"
            self._owner.end_as_lost(ended if self._head_ended else why)
            return
        self._lacking = lacking
        self._begin_with(copy, kill_sec)

    def _begin_with(self, target, kill_sec):
        """Ends every process except the kept copies, within `kill_sec`. `target` then becomes the head."""
        session = self._owner
        self.target = target
        session.step.enter(KILLING, MAX_KILL_SEC * session.family.orders + kill_sec + MARGIN_SEC)
        kept = [target.pid, *(process.pid for process in session.copies.named_processes())]
        try:
            session.family.ask_to_end_others(session, kept, target.pid, kill_sec, self._on_ended)
        except OSError:
            session.on_lost_keeper()

    def _on_ended(self):
        session = self._owner
        answer = session.spare.read_ended()
        if answer is None:
            session.on_lost_keeper()
            return
        if session.is_ending:
            return
        status, gone, names = answer
        if not gone:
            session.end_as_lost(WHY_LATE[KILLING])
            return
        self.ended = texts_of(names)
        if session.cell is not None and session.cell.run is not None:
            session.cell.on_ended(status, True, self.ended)
        session.forget_head()
        session.copies.drop_last()
        session.head, self.target = self.target, None
        self.take_over_head()

    def take_over_head(self, is_branch=False):
        """Tells the new head to take over: it repairs the state that it was forked with, and answers."""
        session = self._owner
        session.watch_head_end()
        session.step.enter(ADOPTING, ADOPT_SEC + MAX_KILL_SEC * session.family.orders)
        mark = None if session.mark == mark_of_root() else session.mark
        is_of_cell = session.cell is not None and session.cell.is_ending and not self._lacking
        files = session.files.before_cell() if is_of_cell else NO_CELL
        session.head.tell(b"H", {"mark": mark, "is_branch": is_branch, **files})

    def on_adopted(self, content):
        """Called when the copy has taken over, with its answer."""
        session = self._owner
        session.step.leave()
        fields = content if isinstance(content, dict) else {}
        lacking, self._lacking = self._lacking, []
        missing = texts_of(fields.get("missing"))
        self.missing = [*lacking, *missing][:MAX_MISSING_ITEMS]
        if self._head_ended:
            self._head_ended = False
            session.warn("session_rolled_back", _message_of_lost_head(lacking, missing))
        session.note_state(checkpoint_of(fields.get("checkpoint")))
        session.on_adopted()


def _message_of_lost_head(lacking, missing):
    """Returns the warning for a session whose process ended while no cell ran."""
    went_back = "to the state after it" if not lacking else f"to an earlier state, which lacks {lacking[0]}"
    rest = f"; this could not be restored: {'; '.join(missing)}" if missing else ""
    return cut_head(f"the process of the session ended after the last cell; the session went back {went_back}{rest}", MAX_TOLD)
