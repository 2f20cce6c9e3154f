"""A branch: a session that begins with the state of another one."""

from ..text import cut_head
from .session_activity import LOST_CODE, SessionActivity
from .session_copies import NO_CHECKPOINT, UNKNOWN
from .session_rollback import MAX_TOLD


class BranchActivity(SessionActivity):
    """A session that begins with the state of another one, or of a checkpoint of it, and runs independently of it."""

    needs_process = False

    @property
    def keeps_checkpoints(self):
        return self._parent.keeps_checkpoints

    @property
    def memory_limit(self):
        return self._parent.memory_limit

    def find_problem(self):
        parent = self.workspace.session(self.frame["session"])
        if parent is None:
            return LOST_CODE, "the session is over"
        if not parent.is_free() or not parent.is_ready:
            return "busy", "a cell or an operation of the session is under way"
        source = self._source_in(parent)
        if source is None or not source.is_alive():
            return NO_CHECKPOINT, UNKNOWN
        why = parent.copies.find_obstacle()
        return None if why is None else (NO_CHECKPOINT, why)

    def begin(self, _spare=None):
        self._parent = parent = self.workspace.session(self.frame["session"])
        self.mark = parent.family.new_mark()
        parent.family.starting.append(self)
        parent.copies.fork(self._source_in(parent), self._start, self._fail, stays=True)

    @property
    def is_starting(self):
        """True until it is ready or over."""
        return not (self._is_ready or self.is_over or self.is_ending)

    def _source_in(self, parent):
        """Returns the process to fork: the head, or the copy of a checkpoint. None if it does not exist."""
        name = self.frame["checkpoint"]
        return parent.head if name is None else parent.copies.find_named(name)

    def _fail(self, why):
        if not self.is_over:
            self.refuse(NO_CHECKPOINT, why)

    def _start(self, copy):
        if self.is_over:  # the branch was cancelled meanwhile
            self._parent.copies.drop(copy)
            return
        if self._parent.is_ending_processes:  # the order to the keeper does not name the copy, which therefore ends
            self._parent.copies.drop(copy)
            self._fail("the process of the session ended meanwhile")
            return
        self.join(self._parent.family)
        self.head = copy
        self.listen(copy)  # replaces the parent's handler
        self._take_over_after(self.family.answered + self.family.orders)

    def _take_over_after(self, orders):
        """Makes the copy the head, which then gets its own mark, once the keeper has answered so many orders. An earlier order does
        not know that mark, and the keeper would end the process."""
        if self.is_over or self.is_ending:
            return
        if self.family.answered < orders:
            self.workspace.after_flush(lambda: self._take_over_after(orders))
        else:
            self.rollback.take_over_head(is_branch=True)

    def on_adopted(self):
        if not self._is_ready:
            self._is_ready = True
            missing = self.rollback.missing
            if missing:
                message = cut_head(f"this branch began without a part of the state; {'; '.join(missing)}", MAX_TOLD)
                self.warn("branch_lacks_state", message)
            self.send({"type": "session_ready", "checkpoint": self.checkpoint, "missing": missing})
        super().on_adopted()

    _parent = None
    _is_ready = False
