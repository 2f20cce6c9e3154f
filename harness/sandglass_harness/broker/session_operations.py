"""Operations on a session between two cells: create, restore or release a checkpoint, list variables, complete names."""

import time

from ..caps import MAX_MISSING_ITEM_CHARS, MAX_LISTED_NAMES, MAX_SAFE_INTEGER
from ..text import cut_head
from .activity import Activity
from .session_copies import NO_CHECKPOINT, UNKNOWN

MAX_DIMENSIONS = 4
LOOK_SEC = 5.0  # for the process to list its variables or complete a name


class SessionOperation(Activity):
    """One operation on a session. It begins when no cell runs and no copy is being made. The session sets the deadline of each
    step: a fork, a rollback, the change of the head."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self._session = None
        self._due = None
        self._has_begun = False
        self.has_restored = False  # True once a restore waits for its copy to become the head

    @property
    def due(self):
        return self._due

    def advance(self, now):
        if self._due is not None and now >= self._due:
            self.fail("io", f"the process of the session did not answer within {LOOK_SEC:g} s")

    def find_problem(self):
        session = self.workspace.session(self.frame["session"])
        if session is None or session.is_ending:
            return "lost", "the session is over"
        return None if session.is_free() else ("busy", "a cell or another operation of the session is under way")

    def begin(self, _spare=None):
        self._session = self.workspace.session(self.frame["session"])
        self._session.operation = self
        self.try_to_begin()

    def try_to_begin(self):
        """Begins if the session is ready."""
        if not self._has_begun and self._session.is_settled:
            self._has_begun = True
            self.start(self._session)

    def start(self, session):
        """Starts the operation."""
        raise NotImplementedError

    def succeed(self, result):
        """Answers the operation with its result."""
        self._leave()
        self.finish(result=result)

    def fail(self, code, message):
        """Answers the operation with an error."""
        self._leave()
        self.finish(error={"code": code, "message": message})

    def refuse(self, code, message):
        self._leave()
        super().refuse(code, message)

    def _leave(self):
        if self._session is not None and self._session.operation is self:
            self._session.operation = None


class SessionCheckpoint(SessionOperation):
    """Keeps a copy of the present state until it is released or the session ends. The id of this activity names the checkpoint."""

    def start(self, session):
        session.keep_copy(self)


class SessionRestore(SessionOperation):
    """Restores the state of a checkpoint, which is kept."""

    def start(self, session):
        session.rollback.restore(self.frame["checkpoint"], self)


class SessionRelease(SessionOperation):
    """Deletes a checkpoint."""

    def start(self, session):
        if session.copies.release(self.frame["checkpoint"]):
            self.succeed({})
        else:
            self.fail(NO_CHECKPOINT, UNKNOWN)


class SessionLook(SessionOperation):
    """Lists the variables, or completes a name."""

    def start(self, session):
        self._due = time.monotonic() + LOOK_SEC
        session.head.tell(b"V", {"code": self.frame["code"], "cursor": self.frame["cursor"], "asked_by": self.id})

    def is_answer(self, content):
        """True for the answer to this operation. The answer to an earlier one may come late."""
        return isinstance(content, dict) and content.get("asked_by") == self.id

    def take(self, content):
        """Handles the answer of the process."""
        if self.frame["code"] is None:
            listed = [_variable(each) for each in _list(content.get("variables"))]
        else:
            listed = [cut_head(each, MAX_MISSING_ITEM_CHARS) for each in _list(content.get("names")) if isinstance(each, str)]
        self.succeed([each for each in listed if each is not None])


def _list(claimed):
    return claimed[:MAX_LISTED_NAMES] if isinstance(claimed, list) else []


def _variable(claimed):
    """Returns a variable as the process describes it; None if its name or type is not text."""
    if not isinstance(claimed, dict) or not all(isinstance(claimed.get(name), str) for name in ("name", "type")):
        return None
    shape, size = claimed.get("shape"), claimed.get("bytes")
    is_shape = isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS and all(map(_is_size, shape))
    named = {name: cut_head(claimed[name], MAX_MISSING_ITEM_CHARS) for name in ("name", "type")}
    return {**named, "shape": shape if is_shape else None, "bytes": size if _is_size(size) else None}


def _is_size(value):
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER
