"""A workspace in which an activity with processes runs alone.

Without a subreaper and pidfds nobody can own the processes of one activity of several; and where scripts can open the descriptors
of this process, as on gVisor, one activity could read what the host sends to another. So the next one begins when everything
but this process and the zygote is killed and proven dead, as between the runs of a pooled sandbox.
"""

from .connection import Connection
from .keepers import LoneSpare
from .program_activity import ProgramActivity
from .workspace import Workspace

_ALONE = "this sandbox runs one activity at a time, and another one is under way"


class SerialWorkspace(Workspace):
    """The same loop with one process that waits, made when nothing of the last activity lives."""

    def scope_of(self, _spare):
        return "serial"

    def find_problem(self, activity):
        if isinstance(activity, Connection):
            return "invalid", "no program can be running that listens at a port of this sandbox"
        if isinstance(activity, ProgramActivity) and activity.frame["tty"] is not None:
            return "invalid", "this sandbox has no terminals"
        if self._runs_processes() or (activity.needs_process and self._activities):
            return "busy", _ALONE
        return super().find_problem(activity)

    def end_orphans(self, _keeper_pid):
        """The zygote, which ends activities, is gone, and the sandbox with it."""
        self.sandbox.reaper.kill_everything()
        return False

    def _runs_processes(self):
        return any(activity.needs_process for activity in self._activities.values())

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
