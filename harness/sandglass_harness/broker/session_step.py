"""The step that a session is in while it starts or goes back to a copy, and the deadline of that step."""

import time

START_SEC = 20.0  # including modules and tool files that each run loads itself
KILL_SEC = 1.2  # for the keeper to end a fork bomb on a busy machine before a copy takes over
AWAIT_SEC = 1.0  # for a copy that a rollback needs
MAX_KILL_SEC = KILL_SEC + AWAIT_SEC  # if no copy had to be awaited
ADOPT_SEC = 1.5  # for a copy to become the head
STARTING, AWAITING, KILLING, ADOPTING = "starting", "awaiting", "killing", "adopting"
WHY_LATE = {  # why the session ends if a step takes too long
    STARTING: f"its process did not start within {START_SEC:g} s",
    AWAITING: f"the copy of its process was not ready within {AWAIT_SEC:g} s",
    KILLING: "the processes that a cell left running could not be ended in time",
    ADOPTING: f"the copy of its process did not answer within {ADOPT_SEC:g} s",
}
WHY_ENDED = {  # and if its head ends in a step
    STARTING: "its process ended before it was ready",
    ADOPTING: "the copy of its process ended before it answered",
}


class SessionStep:
    """The current step; none while the head waits for a cell or runs one."""

    def __init__(self):
        self.name = self.due = None

    def enter(self, name, seconds):
        """Begins a step that may take `seconds`."""
        self.name, self.due = name, time.monotonic() + seconds

    def leave(self):
        """Ends the step."""
        self.name = self.due = None
