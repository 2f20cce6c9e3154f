"""PID 1 of a sandbox in workspace mode: several activities at once, until the host closes the channel.

The sandbox is neither wiped nor checked between activities: it serves one owner, and ends with the channel. As in a sandbox of
a pool, no script can reach this process.
"""

import json
import os
import signal
import sys
import time

from ..version import PROTOCOL_VERSION
from ..wire import encode
from . import descriptors, keepers, request_shape, session_operations, transfer, workspace_shape
from .activity import ProcessActivity
from .broker import MAX_WAIT_MS, watch_child_signals
from .cell_activity import CellActivity
from .channel import GatheringOutbox
from .connection import Connection
from .payloads import WorkspaceChannel
from .processes import Zygote
from .program_activity import ProgramActivity
from .sandbox import Sandbox
from .script_activity import ScriptActivity
from .session_activity import SessionActivity
from .session_branch import BranchActivity
from .sources import Sources
from .watcher import Watcher

MAX_ACTIVITIES = 256
SPARE_PAUSE_SEC = 0.003  # before the next process is forked, so that a short program does not share the CPU with the fork
ORPHANS_SEC = 0.5  # time for the processes of a lost keeper to be gone
_ACTIVITY_CLASSES = {
    "execute": ScriptActivity,
    "execute_in_parts": ScriptActivity,
    "start": ProgramActivity,
    "session": SessionActivity,
    "session_branch": BranchActivity,
    "session_checkpoint": session_operations.SessionCheckpoint,
    "session_restore": session_operations.SessionRestore,
    "session_release": session_operations.SessionRelease,
    "session_look": session_operations.SessionLook,
    "dial": Connection,
    "files_read": transfer.FilesRead,
    "files_write": transfer.FilesWrite,
    "file_digest": transfer.FileDigest,
    "file_list": transfer.FileList,
    "file_make": transfer.FileMake,
    "file_remove": transfer.FileRemove,
    "file_stat": transfer.FileStat,
}


class Workspace:
    """The event loop: activities, the process that waits for the next one, and jobs that continue in steps."""

    copies_unavailable_reason = None  # a sentence if sessions cannot have copies of their process
    _begun = 0  # activities with processes that have begun

    def __init__(self, config, channel_in, outbox, zygote, opener=None):
        self.directory = config["workspace"]
        self._is_sealed = config.get("sealed", False)
        self.import_paths = config["import_paths"]
        self.zygote = zygote
        self.watcher = Watcher()
        self.channel = WorkspaceChannel(channel_in, outbox, self.watcher, self.take_frame, opener)
        self.sandbox = Sandbox(config, zygote, {channel_in, outbox.fd})
        self.sources = Sources(self.watcher, self.channel)
        self._activities = {}
        self._jobs = []  # (activity, generator), the least recently continued first
        self._waiting = []  # activities that wait for a process
        self._spare = self._forking = None
        self._spare_due = None  # the time at which to fork the next spare
        self._after_flush = []
        self._held_back = False  # True if output waits until the host accepts more
        self._uses = 0
        self._refusal = None  # the last reason why no process was forked

    def serve(self, loaded):
        """Serves until the host closes the channel. Never returns. `loaded` is the report of the zygote."""
        watch_child_signals(self.watcher, self.sandbox.reaper.reap)
        self.channel.open()
        self.watcher.watch_read(self.zygote.socket.fileno(), self._on_zygote)
        self._make_spare()
        while self._spare is None:
            if self._forking is None:
                sys.exit(f"could not fork the first process: {self._refusal}")
            self._turn()
        checks = self.sandbox.record_normal_state(self._spare.pid)
        checks["signal_scope"] = self.scope_of(self._spare)
        if self._is_sealed:
            from . import seal  # loaded only here

            checks.update(seal.shut(self.channel.fd))
        version = ".".join(str(n) for n in sys.version_info[:3])
        self.channel.send({"type": "ready", "protocol": PROTOCOL_VERSION, "python": version, **loaded, "checks": checks})
        self.channel.update_write_watch()
        while True:
            self._turn()

    def scope_of(self, spare):
        """Returns the name of the mechanism that isolates activities."""
        return "landlock" if spare.has_domain else "scan"

    # ── for activities ──────────────────────────────────────────────────────────────────────────────────────────

    def session(self, session_id):
        """Returns a session that has not ended, or None."""
        found = self._activities.get(session_id)
        return found if isinstance(found, SessionActivity) else None

    def count_use(self):
        """Counts a script. Returns its number."""
        self._uses += 1
        return self._uses

    def count_begun(self):
        """Returns the number of activities with processes that have begun."""
        return self._begun

    def runs_only(self, activities):
        """True if no other activity with processes is there."""
        return all(each in activities for each in self._activities.values() if isinstance(each, ProcessActivity))

    def after_flush(self, callback):
        """Calls `callback()` at the end of this turn, after as much output was written as the host accepts."""
        self._after_flush.append(callback)

    def add_job(self, activity, steps):
        """Runs the steps of a generator while the host reads their output."""
        self._jobs.append((activity, steps))

    def admit(self, activity):
        """Queues an activity whose request is complete. It gets the next free process."""
        self._waiting.append(activity)
        self._assign()

    def on_over(self, activity):
        """Forgets an activity that has sent its last frame."""
        self._activities.pop(activity.id, None)
        if activity in self._waiting:
            self._waiting.remove(activity)
        self._jobs = [job for job in self._jobs if job[0] is not activity]
        if activity.needs_process:
            self._make_spare()

    def end_orphans(self, keeper_pid):
        """Ends the processes of this keeper and of other lost keepers, which cannot be told apart. Returns False if that takes too
        long."""
        deadline = time.monotonic() + ORPHANS_SEC
        while True:
            # A killed keeper closes its socket, which the broker notices, before its children are reparented to PID 1.
            is_dead = keepers.is_dead(keeper_pid)
            self.sandbox.reaper.reap()
            orphans = keepers.find_orphans(os.getpid(), self.zygote.pid)
            if is_dead and not orphans:
                return True
            if time.monotonic() > deadline:
                return False
            for pid in orphans:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.0005)

    def end_sandbox(self):
        """Ends the sandbox, because an activity could not be ended alone. Never returns."""
        self.sandbox.reaper.kill_everything()
        self.channel.flush_and_exit()

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────

    def _turn(self):
        self.watcher.wait(self._wait_ms())
        now = time.monotonic()
        for activity in list(self._activities.values()):
            due = activity.due
            if due is not None and now >= due:
                activity.advance(now)
        if self._spare_due is not None and now >= self._spare_due:
            self._make_spare()
        due = self.zygote.answer_due
        if due is not None and now >= due:
            self.zygote.answer_due = None
            if not self._on_zygote():
                self.end_sandbox()
        self._step_jobs()
        self.channel.update_write_watch()  # before is_full is read: with an empty outbox nothing would wake the loop
        self._held_back = is_full = self.sources.is_full
        for activity in list(self._activities.values()):
            if isinstance(activity, ScriptActivity):
                activity.apply_back_pressure(is_full)
        self.sources.arm()
        self.channel.update_write_watch()
        if self._after_flush:
            callbacks, self._after_flush = self._after_flush, []
            for callback in callbacks:
                callback()
            self.channel.update_write_watch()

    def _wait_ms(self):
        if self._held_back and not self.sources.is_full:  # the last write made room, which no descriptor reports
            return 0
        if not self.sources.is_full and (self.sources.has_rest or any(activity.can_send() for activity, _ in self._jobs)):
            return 0
        due = [activity.due for activity in self._activities.values()]
        due = [moment for moment in (*due, self.zygote.answer_due, self._spare_due) if moment is not None and moment != float("inf")]
        if not due:
            return None
        return min(max(0, (min(due) - time.monotonic()) * 1000 + 0.2), MAX_WAIT_MS)

    def _step_jobs(self):
        for job in list(self._jobs):
            activity, steps = job
            if self.sources.is_full:
                return
            if activity.is_over or not activity.can_send():
                continue
            self._jobs.remove(job)  # to the end of the queue
            if next(steps, self) is not self and not activity.is_over:
                self._jobs.append(job)

    # ── requests of the host ────────────────────────────────────────────────────────────────────────────────────

    def take_frame(self, line, payload=None):
        """Handles a frame. Raises ValueError for one that violates the protocol."""
        if not line.strip():
            return
        frame = request_shape.read(line, workspace_shape.FIELDS)
        frame_type = frame["type"]
        if (payload is not None) != (frame_type == "input"):
            raise ValueError("a frame input needs a payload, and no other frame may have one")
        if frame_type == "ping":
            self.channel.send({"type": "pong", "nonce": frame["nonce"]})
        elif frame_type in _FRAME_HANDLERS:
            activity = self._activities.get(frame.get("execution_id"))
            if activity is not None:  # otherwise the activity is over, and the frame is late
                _FRAME_HANDLERS[frame_type](activity, frame, payload)
        elif frame_type in _ACTIVITY_CLASSES:
            self._begin(frame)
        else:
            raise ValueError(f"unsupported frame type {frame_type} in a workspace")

    def _begin(self, frame):
        if frame["execution_id"] in self._activities:
            raise ValueError(f"execution_id {json.dumps(frame['execution_id'])} is already in use")
        activity_class = _ACTIVITY_CLASSES[frame["type"]]
        if activity_class is ScriptActivity and frame.get("session") is not None:
            activity_class = CellActivity
        activity = activity_class(self, frame)
        problem = self.find_problem(activity)
        if len(self._activities) >= MAX_ACTIVITIES:
            problem = "busy", f"the workspace already has {MAX_ACTIVITIES} activities; end some of them and try again"
        elif problem is None and not descriptors.are_left():
            problem = "busy", descriptors.NONE_LEFT
        if problem is not None:
            activity.refuse(*problem)
            return
        self._activities[activity.id] = activity
        self._begun += isinstance(activity, ProcessActivity)
        if not activity.needs_process:
            activity.begin()
        elif activity.is_complete:
            self.admit(activity)

    def find_problem(self, activity):
        """Returns (code, message) of the problem that prevents an activity from starting, or None."""
        return activity.find_problem()

    # ── processes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _assign(self):
        while self._waiting and self._spare is not None:
            self._waiting.pop(0).begin(self._take_spare())
            self._spare_due = time.monotonic() + SPARE_PAUSE_SEC
        if self._waiting or self._spare_due is None:
            self._make_spare()

    def _make_spare(self):
        self._spare_due = None
        if self._spare is not None or self._forking is not None:
            return
        if not descriptors.are_left():
            self._refuse_waiting(descriptors.NONE_LEFT)
            return
        self._forking = self.new_spare()
        try:
            self.zygote.ask_to_fork(self._forking)
        except OSError:
            self.end_sandbox()

    def _on_zygote(self, _event=None):
        """Reads the zygote's answer. Returns False if there is none yet."""
        try:
            number = self.zygote.read_answer()
        except EOFError:
            self.end_sandbox()
        if number is None:
            return False
        if self._forking is None:
            return True
        if number == 0:
            self._on_no_spare(keepers.NO_PROCESS)
        else:
            self.on_forked(self._forking, number)
        return True

    def new_spare(self):
        """Creates a spare whose process the zygote is then asked to fork."""
        return keepers.KeptSpare()

    def on_forked(self, spare, number):
        """Called when the zygote has forked a process with the pid `number`."""
        spare.keeper_pid = number
        self.watcher.watch_read(spare.control.fileno(), lambda _event: self._on_keeper())

    def _on_keeper(self):
        """Reads from the newest keeper whether its first process is waiting."""
        spare = self._forking
        self.watcher.forget(spare.control.fileno())
        problem = spare.take_first()
        if problem is not None:
            self._on_no_spare(problem)
            return
        self._spare, self._forking = spare, None
        for fd in (spare.control.fileno(), spare.pid_fd):
            self.watcher.watch_read(fd, lambda _event: self._on_lost_spare())
        self._assign()

    def _on_lost_spare(self):
        """Replaces a spare that was killed, or whose keeper was. Only activities that the kernel does not isolate can do that."""
        self._take_spare().close()  # its remaining processes exit when the socket closes
        self._make_spare()

    def _take_spare(self):
        spare, self._spare = self._spare, None
        for fd in (spare.control.fileno(), spare.pid_fd):
            self.watcher.forget(fd)
        return spare

    def _on_no_spare(self, problem):
        """Refuses the waiting activities, because no process was forked. The next request tries again."""
        self._forking.close()
        self._forking = None
        self._refuse_waiting(problem)

    def _refuse_waiting(self, message):
        self._refusal = message
        waiting, self._waiting = self._waiting, []
        for activity in waiting:
            self._activities.pop(activity.id, None)
            activity.needs_process = False  # so that its end does not try again at once
            activity.refuse("busy", message)


def _on_tool_result(activity, frame, _payload):
    if isinstance(activity, ScriptActivity):
        first = {name: frame[name] for name in ("type", "execution_id", "id")}
        activity.pass_answer(encode({**first, **frame}))


def _on_tool_time(activity, frame, _payload):
    if isinstance(activity, ScriptActivity):
        activity.report_tool_time(frame)


def _on_interrupt(activity, _frame, _payload):
    if isinstance(activity, SessionActivity):
        activity.interrupt()


def _on_resize(activity, frame, _payload):
    if isinstance(activity, ProgramActivity):
        activity.resize(frame["rows"], frame["columns"])


def _on_signal(activity, frame, _payload):
    if isinstance(activity, ProgramActivity):
        activity.signal(frame["signal"])


# The handlers of frames to an activity, by type.
_FRAME_HANDLERS = {
    "cancel": lambda activity, _frame, _payload: activity.cancel(),
    "credit": lambda activity, frame, _payload: activity.take_credit(frame["stream"], frame["bytes"]),
    "input": lambda activity, _frame, payload: activity.put_input(payload),
    "input_end": lambda activity, _frame, _payload: activity.end_input(),
    "tool_result": _on_tool_result,
    "tool_time": _on_tool_time,
    "interrupt": _on_interrupt,
    "resize": _on_resize,
    "signal": _on_signal,
}


def serve(config, channel, zygote_pid, control_fd):
    """Serves until the host closes the channel. Never returns."""
    channel_in, channel_out = channel
    descriptors.raise_limit()
    outbox, opener = GatheringOutbox(channel_out), None
    if config.get("sealed"):
        from . import seal  # after the fork of the zygote, which must not get the key

        key = seal.receive_key(channel_in)
        outbox, opener = seal.SealedOutbox(channel_out, key), seal.Opener(key)
    zygote = Zygote(zygote_pid, control_fd)
    loaded = zygote.read_report()
    workspace_class = Workspace
    if loaded.pop("is_serial"):
        from .serial_workspace import SerialWorkspace as workspace_class
    workspace_class(config, channel_in, outbox, zygote, opener).serve(loaded)
