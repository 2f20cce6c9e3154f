"""Decides whether a rollback may remove what was appended to the open files of a session."""

MAX_CHANGED = 400  # open files; if more have changed between two cells, a rollback removes nothing
NO_CELL = {"changed": [], "removes": False}  # for a copy that replaces more than one cell, or comes from a living process


class SessionFiles:
    """The open files of a session during a cell. The kernel does not tell who wrote to a file, so a rollback removes only what was
    appended while no other activity of the workspace had a process."""

    def __init__(self, session):
        self._session = session
        self._changed = []  # what the head told of files that have changed since its copy was made; None if that was unusable
        self._is_told = False  # True once the head has told it in this cell
        self._begun = None  # the number of activities when the cell began; None if another one had a process

    def begin_cell(self):
        """Called before a cell begins."""
        self._changed, self._begun = [], self._count_if_alone()
        self._is_told = False

    def take(self, claimed):
        """Takes what the head told of its open files: [descriptor, position, size, time of the last change] of each. Returns False if
        it has told before in this cell."""
        if self._is_told:
            return False
        self._is_told = True
        is_list = isinstance(claimed, list) and len(claimed) <= MAX_CHANGED
        self._changed = claimed if is_list and all(map(_is_state, claimed)) else None
        return True

    def before_cell(self):
        """Returns what a copy must know to restore the files as they were before the cell."""
        if self._changed is None:
            return NO_CELL
        return {"changed": self._changed, "removes": self._begun is not None and self._begun == self._count_if_alone()}

    def _count_if_alone(self):
        workspace = self._session.workspace
        return workspace.count_begun() if workspace.runs_only((self._session, self._session.cell)) else None


def _is_state(claimed):
    return isinstance(claimed, list) and len(claimed) == 4 and all(type(each) is int and abs(each) < 1 << 63 for each in claimed)
