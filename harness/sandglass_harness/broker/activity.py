"""The common base of a workspace's activities: their frames, and the end of their processes."""

import signal
import time

from ..wire import encode

END_SEC = 0.5  # from the order to end an activity to its confirmed end


class Activity:
    """One activity, from its request to its last frame."""

    needs_process = False
    is_complete = True  # False while a part of its request has not arrived

    def __init__(self, workspace, frame):
        self.workspace = workspace
        self.frame = frame
        self.id = frame["execution_id"]
        self.id_json = encode(self.id)[:-1]
        self.started = time.monotonic()
        self.is_over = False

    @property
    def due(self):
        """The time of the next call of advance(), or None."""
        return None

    def advance(self, now):
        """Handles everything that is due at `now`."""

    def find_problem(self):
        """Returns (code, message) of the problem that prevents its start, or None."""
        return None

    def put_input(self, data):
        """Accepts input from the host."""

    def end_input(self):
        """Marks the end of the host's input."""

    def take_credit(self, stream, count):
        """Adds the bytes of a stream that the host has consumed to its credit."""

    def refuse(self, code, message):
        """Ends it before it begins, with an error."""
        self.finish(error={"code": code, "message": message})

    def cancel(self):
        """Ends it at the host's request."""
        self.refuse("cancelled", "the activity was cancelled")

    def send(self, frame):
        """Sends a frame of this activity."""
        self.workspace.channel.send({"type": frame.pop("type"), "execution_id": self.id, **frame})

    def grant_input(self, count):
        """Tells the host that it may send `count` more bytes."""
        if count:
            self.send({"type": "credit", "stream": "stdin", "bytes": count})

    def finish(self, ending=None, error=None, result=None, confirmed=True):
        """Sends the last frame."""
        if self.is_over:
            return
        self.is_over = True
        duration = round((time.monotonic() - self.started) * 1000, 3)
        frame = {"type": "activity_done", "ending": ending, "error": error, "result": result}
        self.send({**frame, "duration_ms": duration, "confirmed": confirmed})
        self.workspace.on_over(self)


class ProcessActivity(Activity):
    """An activity with processes. Its keeper ends them, or the zygote in a workspace that runs one activity at a time."""

    needs_process = True

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self.spare = None
        self.killed_for = None
        self._end_due = None  # the time at which its processes must be gone
        self._confirmed = True

    @property
    def is_ending(self):
        """True once its end was requested."""
        return self._end_due is not None

    def begin(self, spare):
        """Starts in the process of `spare`."""
        self.spare = spare
        spare.watch(self.workspace.watcher, self._on_keeper)

    def end(self, cause):
        """Requests the end of its processes. `cause` is None if the first one has ended by itself."""
        if self.is_ending or self.spare is None:
            return
        self.killed_for = self.killed_for or cause
        self._end_due = time.monotonic() + END_SEC
        self.on_end_begun()
        try:
            self.spare.ask_to_end(self._end_due)
        except OSError:
            self._on_lost_keeper()

    def cancel(self):
        """Ends it at the host's request."""
        if self.spare is None:
            super().cancel()
        else:
            self.end("cancelled")

    def on_end_begun(self):
        """Called once, before the processes are killed."""

    def on_dead(self, status, confirmed):
        """Called when no process is left, or after END_SEC. `status` is the wait(2) status of the first process."""
        raise NotImplementedError

    def check_end(self, now):
        """Ends the sandbox if the processes do not end in time."""
        if self._end_due is not None and now >= self._end_due:
            if self.spare.has_answered():  # while the broker was busy with other activities
                self._on_keeper()
                return
            self._close_keeper()
            self.on_dead(signal.SIGKILL, False)
            self.workspace.end_sandbox()

    def close_spare(self):
        """Closes the descriptors of its processes."""
        if self.spare is not None:
            self.spare.forget(self.workspace.watcher)
            self.spare.close()

    def _on_keeper(self):
        answer = self.spare.read_answer()
        if answer is None or not self.is_ending:
            self._on_lost_keeper()
            return
        status, gone = answer
        self._close_keeper()
        self.on_dead(status, gone)
        if not gone:
            self.workspace.end_sandbox()

    def _on_lost_keeper(self):
        if not self.is_ending:
            self._end_due = time.monotonic() + END_SEC
            self.on_end_begun()
        self._close_keeper()
        confirmed = self.workspace.end_orphans(self.spare.keeper_pid)
        self.on_dead(self.workspace.sandbox.reaper.status_of(self.spare.pid), confirmed)
        if not confirmed:
            self.workspace.end_sandbox()

    def _close_keeper(self):
        self.spare.forget(self.workspace.watcher)
        self._end_due = float("inf")  # no answer is expected any more
