"""A cell of a session: a script in a process that outlives it."""

import signal
import time

from .script_activity import ScriptActivity
from .traffic import LIVE_READS

KEPT, ROLLED_BACK, LOST = "kept", "rolled-back", "lost"


class CellActivity(ScriptActivity):
    """A cell. It has the frames of a script. It leaves the session in a new state, or is rolled back to the previous one."""

    needs_process = False

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self._session = None
        self._state = KEPT
        self._is_ending = self._is_dead = self._is_interrupted = False
        self._ended = []  # names of the processes that a rollback ended

    @property
    def is_ending(self):
        return self._is_ending

    @property
    def run(self):
        """Its run; None before it has begun."""
        return self._run

    def find_problem(self):
        session = self.workspace.session(self.frame["session"])
        if session is None:
            return "request", "the session is over"
        if session.is_ending:
            self._state = LOST  # also of a cell that is refused
        return session.find_problem_of_cell() or super().find_problem()

    def begin(self, _spare=None):
        self._session = self.workspace.session(self.frame["session"])
        self._session.cell = self
        if self.is_complete:
            self.on_complete()

    def on_complete(self):
        session = self._session
        if session is None or session.cell is not self:  # the cell has ended meanwhile
            return
        if not session.is_ready:  # a rollback is under way, which calls this again
            return
        session.prepare_cell()
        self.start_run(session.head, session.spare.keeper_pid, session.find_others())
        if self._is_interrupted:
            self.interrupt()

    def is_set_up_at_once(self):
        return not self.frame.get("tool_sources")

    def interrupt(self):
        """Interrupts the cell now, or as soon as it runs."""
        self._is_interrupted = True
        if self._run is not None:
            self._run.interrupted = True
            self._session.head.signal(signal.SIGINT)

    def refuse(self, code, message):
        self._leave()
        super().refuse(code, message)

    def cancel(self):
        if self._collection is not None:
            self._collection.stop()
        if self._run is None:
            self.refuse("cancelled", "the cell was cancelled")
        else:
            self.end("cancelled")

    def end(self, cause):
        """Ends the cell and rolls its changes back. `cause` is None if its process has ended by itself."""
        if self._is_ending or self._run is None:
            return
        self._run.killed_for = self._run.killed_for or cause
        self._stop()
        self._session.rollback.begin()

    def check_end(self, now):
        """Does nothing: the session has the deadline."""

    def _stop(self):
        self._is_ending = True
        self._traffic.stop()
        self._run.ended_at = time.monotonic()

    def _on_finished(self):
        if self._is_ending:
            return
        self._stop()
        run = self._run
        self._traffic.drain(LIVE_READS)
        rolls_back = self.frame["cell"]["on_error"] == "rollback" and not run.reported_interrupt
        if run.killed_for is not None or (run.reported_error and rolls_back):
            self._session.rollback.begin()
            return
        run.status, run.confirmed = (1 << 8 if run.reported_error else 0), True
        self.workspace.after_flush(self._session.head.take_cell_socket().close)  # closing is slow
        self._session.on_kept(run)
        self.collect()

    def on_ended(self, status, confirmed, ended=()):
        """Reads the last output of its processes, which have ended."""
        run = self._run
        if run is None:
            self._state = LOST
            self.refuse("cancelled", "the session ended before the cell began")
            return
        if self._is_dead:  # called again when the copy for the head has failed
            return
        self._is_dead = True
        if not self._is_ending:
            self._stop()
        # A cell that reported its end is rolled back for its error, not for how its process was killed afterwards.
        run.status = (1 << 8 if run.reported_error else 0) if run.finished else status
        run.confirmed = confirmed
        self._ended = list(ended)
        self._traffic.drain()
        run.send_final_error()

    def settle(self, state):
        """Sends the end of the cell, with the state of the session."""
        if self.is_over:
            return
        self._state = state
        self.collect()

    def extra_end_fields(self, frame):
        session = self._session or self.workspace.session(self.frame["session"])  # a refused cell has no session yet
        if session is None:
            return {}
        missing = session.rollback.missing if self._state == ROLLED_BACK else []
        state = {"state": self._state, "checkpoint": session.checkpoint, "missing": missing, "ended": self._ended}
        return {"cell": state, "warnings": [*frame.get("warnings", []), *session.take_warnings()]}

    def _finish(self):
        self._leave()
        super()._finish()
        self._session.on_cell_over()

    def _leave(self):
        if self._session is not None and self._session.cell is self:
            self._session.cell = None
