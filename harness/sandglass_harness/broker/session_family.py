"""The sessions that share a keeper: a session and its branches."""

import json
import resource

FIRST_MARK = 1 << 40  # of the first branch; later ones get lower marks, because no process can raise its own


class SessionFamily:
    """The sessions of one keeper. The keeper ends the processes of all of them, or of one. It tells them apart by a mark that
    programs inherit.

    The mark is a limit that nothing else uses (RLIMIT_RTTIME). A process can lower its mark: to that of a later branch, whose rollback
    or end then ends it, or to one that no session has, so that the next rollback of any session ends it.
    """

    def __init__(self, spare):
        self.spare = spare
        self.members = []
        self.starting = []  # branches that are being made
        self._waiting = []  # callbacks for the next answers
        self.answered = 0  # orders
        self._next_mark = FIRST_MARK

    def new_mark(self):
        """Returns the mark of a new branch."""
        self._next_mark -= 1
        return self._next_mark

    def has_starting(self):
        """True while a branch is being made."""
        self.starting = [branch for branch in self.starting if branch.is_starting]
        return bool(self.starting)

    def is_last(self, member):
        """True if no other session is left."""
        return self.members == [member]

    def expect(self, on_answer):
        """Registers `on_answer()` for the next answer of the keeper."""
        self._waiting.append(on_answer)

    @property
    def orders(self):
        """The number of orders that the keeper, which serves one at a time, has not answered."""
        return len(self._waiting)

    def ask_to_end_others(self, member, kept, new_head, seconds, on_answer):
        """Asks the keeper to end the processes of a session except `kept`, within `seconds`. Raises OSError if it is gone."""
        # The processes of a session that is ending are the business of the order before this one.
        others = [each for each in self.members if each is not member and not each.is_ending]
        kept = [*kept, *(process.pid for each in others for process in each.processes() if process.pid is not None)]
        marks = [each.mark for each in others]
        copies = [process.pid for process in member.processes() if process.pid is not None]
        order = {"old": member.head.pid, "own": copies, "new": new_head, "kept": kept, "marks": marks, "seconds": seconds}
        self.expect(on_answer)
        self.spare.ask_to_end_others(json.dumps(order).encode())

    def on_keeper(self):
        """Handles an answer of the keeper, or its end."""
        if self._waiting and not self.spare.is_gone():
            self.answered += 1
            self._waiting.pop(0)()
            return
        self._waiting.clear()
        for member in list(self.members):
            member.on_lost_keeper()


def mark_of_root():
    """Returns the mark of processes that no branch started."""
    return resource.RLIM_INFINITY
