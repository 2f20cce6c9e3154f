"""A workspace in which an activity with processes runs alone.

Two kernels need this. Without a subreaper and pidfds, no process can own the processes of one activity among several. On gVisor,
scripts can open the descriptors of this process, so that one activity could read what the host sends to another. So the next activity
begins when everything but this process and the zygote is killed and proven dead, as between the runs of a pooled sandbox.

A session with all its cells is one activity. On every kernel its cells share a process, so a process that a cell leaves can read as
much here as elsewhere. Copies of that process are not possible: only a keeper can end the processes of one cell and no others.
"""

from .connection import Connection
from .keepers import LoneSpare
from .program_activity import ProgramActivity
from .script_activity import ScriptActivity
from .session_activity import SessionActivity
from .workspace import Workspace

_ALONE = "this sandbox runs one activity at a time, and another one is under way"


class SerialWorkspace(Workspace):
    """The same loop with one process that waits, made when nothing of the last activity lives."""

    why_no_copies = "this sandbox has no checkpoints: its kernel cannot end what a cell started and nothing else"

    def scope_of(self, _spare):
        return "serial"

    def find_problem(self, activity):
        if isinstance(activity, Connection):
            return "invalid", "no program can be running that listens at a port of this sandbox"
        if isinstance(activity, ProgramActivity) and activity.frame["tty"] is not None:
            return "invalid", "this sandbox has no terminals"
        if self._is_taken(activity):
            return "busy", _ALONE
        return super().find_problem(activity)

    def end_orphans(self, _keeper_pid):
        """The zygote, which ends activities, is gone, and the sandbox with it."""
        self.sandbox.reaper.kill_everything()
        return False

    def _is_taken(self, activity):
        """True if an activity cannot run together with those that are under way. A session can run with its cells and operations on files."""
        if activity.needs_process:
            return bool(self._activities)
        others = [other for other in self._activities.values() if not isinstance(other, SessionActivity)]
        return bool(others) if _runs(activity) else any(_runs(other) for other in others)

    def _assign(self):
        if self._waiting and self._spare is not None:
            spare, self._spare = self._spare, None
            self._waiting.pop(0).begin(spare)
        elif self._waiting:
            self._make_spare()

    def new_spare(self):
        return LoneSpare(self.zygote, self.sandbox.reaper)

    def _on_zygote(self, _event=None):
        if self._forking is not None:
            return super()._on_zygote()
        ending = next((activity for activity in self._activities.values() if activity.needs_process), None)
        if ending is None or not ending.is_ending:
            self.end_sandbox()  # it is gone: it was asked for nothing
        ending.spare.on_answer()
        return True

    def on_forked(self, spare, number):
        spare.on_fork(number)
        self._spare, self._forking = spare, None
        self._assign()


def _runs(activity):
    """True for a script, a cell or a program."""
    return activity.needs_process or isinstance(activity, ScriptActivity)
