"""A workspace that runs one activity with processes at a time.

Two kinds of kernels need this. Without a subreaper and pidfds, no process can own the processes of one activity among several. On
gVisor, scripts can open the descriptors of this process, so one activity could read what the host sends to another. So the next
activity begins once every process except this one and the zygote is confirmed dead, as between the runs of a pooled sandbox.

A session with all its cells is one activity. On every kernel its cells share a process, so a process that a cell leaves behind can
read no more here than elsewhere. Copies of that process are not possible, because only a keeper can end just the processes of one
cell.
"""

from .connection import Connection
from .keepers import LoneSpare
from .program_activity import ProgramActivity
from .script_activity import ScriptActivity
from .session_activity import SessionActivity
from .workspace import Workspace

_ALONE = "this sandbox runs one activity at a time, and another one is under way"


class SerialWorkspace(Workspace):
    """The same event loop. The waiting process is forked once no process of the last activity is left."""

    copies_unavailable_reason = "this sandbox has no checkpoints: its kernel cannot end what a cell started and nothing else"

    def scope_of(self, _spare):
        return "serial"

    def find_problem(self, activity):
        if isinstance(activity, Connection):
            return "invalid", "this sandbox runs one activity at a time, so no program can listen on a port meanwhile"
        if isinstance(activity, ProgramActivity) and activity.frame["tty"] is not None:
            return "invalid", "this sandbox has no terminals"
        if self._is_busy(activity):
            return "busy", _ALONE
        return super().find_problem(activity)

    def end_orphans(self, _keeper_pid):
        """Ends the sandbox, because the zygote, which ends activities, is gone."""
        self.sandbox.reaper.kill_everything()
        return False

    def _is_busy(self, activity):
        """True if an activity cannot run beside the current ones. A session can run beside its cells and file operations."""
        if activity.needs_process:
            return bool(self._activities)
        others = [other for other in self._activities.values() if not isinstance(other, SessionActivity)]
        return bool(others) if _runs_code(activity) else any(_runs_code(other) for other in others)

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
            self.end_sandbox()  # no request was pending, so the zygote is gone
        ending.spare.on_answer()
        return True

    def on_forked(self, spare, number):
        spare.on_fork(number)
        self._spare, self._forking = spare, None
        self._assign()


def _runs_code(activity):
    """True for a script, a cell or a program."""
    return activity.needs_process or isinstance(activity, ScriptActivity)
