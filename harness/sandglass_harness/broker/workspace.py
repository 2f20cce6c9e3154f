"""PID 1 of a sandbox in workspace mode: several activities at once, until the host closes the channel.

Nothing is wiped and nothing proves a sandbox fit for the next run: it serves one owner, and ends with the channel. No script
reaches this process, as in a sandbox of a pool.
"""

import os
import signal
import sys
import time

from ..version import PROTOCOL_VERSION
from ..wire import encode
from . import descriptors, keepers, request_shape, session_operations, transfer, workspace_shape
from .broker import MAX_WAIT_MS, watch_child_signals
from .cell_activity import CellActivity
from .connection import Connection
from .payloads import GatheringOutbox, WorkspaceChannel
from .processes import Zygote
from .program_activity import ProgramActivity
from .sandbox import Sandbox
from .script_activity import ScriptActivity
from .session_activity import SessionActivity
from .session_branch import BranchActivity
from .sources import Sources
from .watcher import Watcher

MAX_ACTIVITIES = 256
SPARE_PAUSE_SEC = 0.003  # before the next process is made: a short program ends first, and need not share the processor with a fork
_NO_DESCRIPTORS = "the activities of the workspace use all of its descriptors"
ORPHANS_SEC = 0.5  # time for the processes of a lost keeper to be gone
_KINDS = {
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

    why_no_copies = None  # a sentence, where sessions cannot have copies of their process

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
        self._jobs = []  # (activity, generator), the one that waited longest first
        self._waiting = []  # activities that wait for a process
        self._spare = self._forking = None
        self._spare_due = None  # the time at which the next one is made
        self._after_flush = []
        self._held_back = False  # output waits until the host takes more
        self._uses = 0

    def serve(self, loaded):
        """Serves until the host closes the channel. Never returns. `loaded` is the report of the zygote."""
        watch_child_signals(self.watcher, self.sandbox.reaper.reap)
        self.channel.open()
        self.watcher.watch_read(self.zygote.socket.fileno(), self._on_zygote)
        self._make_spare()
        while self._spare is None:
            if self._forking is None:
                sys.exit("the first process could not be made")
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
        """Returns the number of the next script."""
        self._uses += 1
        return self._uses

    def after_flush(self, act):
        """Calls `act()` at the end of this turn, after as much of the gathered output was written as the host takes."""
        self._after_flush.append(act)

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
        """Ends the processes of this keeper and of others that are gone, which cannot be told apart. Returns False if that takes
        too long."""
        deadline = time.monotonic() + ORPHANS_SEC
        while True:
            # A process that is killed closes its socket, which the broker notices, before it leaves its children to PID 1.
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
        """Ends everything: an activity could not be ended alone. Never returns."""
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
        self.channel.update_write_watch()  # before it counts what waits: with an empty outbox nothing would wake the loop
        self._held_back = is_full = self.sources.is_full
        for activity in list(self._activities.values()):
            if isinstance(activity, ScriptActivity):
                activity.apply_back_pressure(is_full)
        self.sources.arm()
        self.channel.update_write_watch()
        if self._after_flush:
            acts, self._after_flush = self._after_flush, []
            for act in acts:
                act()
            self.channel.update_write_watch()

    def _wait_ms(self):
        if self._held_back and not self.sources.is_full:  # the last write made room, and no descriptor reports that
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
        """Serves a frame. Raises ValueError for one that is not as the protocol says."""
        if not line.strip():
            return
        frame = request_shape.read(line, workspace_shape.FIELDS)
        kind = frame["type"]
        if (payload is not None) != (kind == "input"):
            raise ValueError("only the frame input has a payload")
        if kind == "ping":
            self.channel.send({"type": "pong", "nonce": frame["nonce"]})
        elif kind in _ACTS:
            activity = self._activities.get(frame.get("execution_id"))
            if activity is not None:  # otherwise it is over, and the frame is late
                _ACTS[kind](activity, frame, payload)
        elif kind in _KINDS:
            self._begin(frame)
        else:
            raise ValueError(f"a workspace serves no {kind}")

    def _begin(self, frame):
        if frame["execution_id"] in self._activities:
            raise ValueError("an id is used twice")
        kind = _KINDS[frame["type"]]
        if kind is ScriptActivity and frame.get("session") is not None:
            kind = CellActivity
        activity = kind(self, frame)
        problem = self.find_problem(activity)
        if len(self._activities) >= MAX_ACTIVITIES:
            problem = "busy", f"the workspace has {MAX_ACTIVITIES} activities already"
        elif problem is None and not descriptors.are_left():
            problem = "busy", _NO_DESCRIPTORS
        if problem is not None:
            activity.refuse(*problem)
            return
        self._activities[activity.id] = activity
        if not activity.needs_process:
            activity.begin()
        elif activity.is_complete:
            self.admit(activity)

    def find_problem(self, activity):
        """Returns (code, message) of what keeps an activity from starting, or None."""
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
            self._refuse_waiting(_NO_DESCRIPTORS)
            return
        self._forking = self.new_spare()
        try:
            self.zygote.ask_to_fork(self._forking)
        except OSError:
            self.end_sandbox()

    def _on_zygote(self, _event=None):
        """Reads the zygote's answer. Returns False when there is none."""
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
        """Returns a spare whose process the zygote is then asked to fork."""
        return keepers.KeptSpare()

    def on_forked(self, spare, number):
        """The zygote has forked the process of this number."""
        spare.keeper_pid = number
        self.watcher.watch_read(spare.control.fileno(), lambda _event: self._on_keeper())

    def _on_keeper(self):
        """Reads from the keeper that was forked last whether its first process waits."""
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
        """The process that waits, or its keeper, was killed: only activities that the kernel does not isolate can do that."""
        self._take_spare().close()  # what is left of it ends with its socket
        self._make_spare()

    def _take_spare(self):
        spare, self._spare = self._spare, None
        for fd in (spare.control.fileno(), spare.pid_fd):
            self.watcher.forget(fd)
        return spare

    def _on_no_spare(self, problem):
        """No process was made. The waiting activities are refused with the reason; the next request tries again."""
        self._forking.close()
        self._forking = None
        self._refuse_waiting(problem)

    def _refuse_waiting(self, message):
        waiting, self._waiting = self._waiting, []
        for activity in waiting:
            self._activities.pop(activity.id, None)
            activity.needs_process = False  # its end does not try again at once
            activity.refuse("busy", message)


def _answer(activity, frame, _payload):
    if isinstance(activity, ScriptActivity):
        first = {name: frame[name] for name in ("type", "execution_id", "id")}
        activity.pass_answer(encode({**first, **frame}))


def _tool_time(activity, frame, _payload):
    if isinstance(activity, ScriptActivity):
        activity.report_tool_time(frame)


def _interrupt(activity, _frame, _payload):
    if isinstance(activity, SessionActivity):
        activity.interrupt()


def _resize(activity, frame, _payload):
    if isinstance(activity, ProgramActivity):
        activity.resize(frame["rows"], frame["columns"])


def _signal(activity, frame, _payload):
    if isinstance(activity, ProgramActivity):
        activity.signal(frame["signal"])


# The method of an activity for each type of frame that names it.
_ACTS = {
    "cancel": lambda activity, _frame, _payload: activity.cancel(),
    "credit": lambda activity, frame, _payload: activity.take_credit(frame["stream"], frame["bytes"]),
    "input": lambda activity, _frame, payload: activity.put_input(payload),
    "input_end": lambda activity, _frame, _payload: activity.end_input(),
    "tool_result": _answer,
    "tool_time": _tool_time,
    "interrupt": _interrupt,
    "resize": _resize,
    "signal": _signal,
}


def serve(config, channel, zygote_pid, control_fd):
    """Serves until the host closes the channel. Never returns."""
    channel_in, channel_out = channel
    descriptors.raise_limit()
    outbox, opener = GatheringOutbox(channel_out), None
    if config.get("sealed"):
        from . import seal  # after the fork of the zygote, which must not get the key

        key = seal.receive_key(channel_in)
        outbox, opener = seal.SealedGatheringOutbox(channel_out, key), seal.Opener(key)
    zygote = Zygote(zygote_pid, control_fd)
    loaded = zygote.read_report()
    kind = Workspace
    if loaded.pop("is_serial"):
        from .serial_workspace import SerialWorkspace as kind
    kind(config, channel_in, outbox, zygote, opener).serve(loaded)
