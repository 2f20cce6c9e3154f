"""PID 1 of a sandbox. It serves the host's requests. No script can reach it.

It runs no script and imports only the standard library. It is one loop over descriptors, and never blocks on a peer.
"""

import os
import signal
import sys
import time

from ..caps import HIGH_WATER_BYTES
from ..version import PROTOCOL_VERSION
from ..wire import encode
from . import request_shape
from .channel import Channel, GatheringOutbox
from .intake import WIPE_SEC, Intake
from .processes import Spare, Zygote
from .run import ANSWER_HEAD, Run, build_check_run
from .run_end import COLLECTING, RunEnd
from .sandbox import Sandbox
from .traffic import Traffic
from .watcher import Watcher

MAX_WAIT_MS = 3_600_000  # poll(2) accepts less than 2**31; after an early return the loop waits again
SETS_UP = ("preamble", "tools", "tool_sources")  # fields of a request that can fail before the script runs
MAX_CHECKS = 200  # per process; a new process frees the memory that the interpreter holds

IDLE, FORKING, RUNNING, ENDING, RESETTING = "idle", "forking", "running", "ending", "resetting"


class Broker:
    """The event loop of PID 1: its state, its deadlines, and the requests of the host."""

    def __init__(self, config, channel_in, outbox, zygote):
        self._config = config
        self._checks = config.get("checker", False)
        self._loads = bool(config["tools"] or config["preload"])  # each run may load some of these itself
        self._zygote = zygote
        self._watcher = Watcher()
        self._channel = Channel(channel_in, outbox, self._watcher, self._on_line)
        self._sandbox = Sandbox(config, zygote, {channel_in, outbox.fd})
        self._intake = Intake(config["workspace"], self._sandbox.roots)
        self._end = RunEnd(self._sandbox, self._channel, self._on_zygote, self._on_run_done)
        self._state = FORKING
        self._waiting = []  # requests that arrived before the spare was ready
        self._spare = None
        self._run = self._traffic = None
        self._uses = 0
        self._is_growth_due = False
        self._reset_nonce = None

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self):
        """Serves until the host closes the channel. Never returns."""
        watch_child_signals(self._watcher, self._sandbox.reaper.reap)
        loaded = self._zygote.read_report()
        self._channel.open()
        self._watcher.watch_read(self._zygote.socket.fileno(), self._on_zygote)
        self._make_spare()
        while self._state is FORKING:
            self._turn()
        checks = self._sandbox.record_normal_state(self._spare.pid)
        checks.update(self._sandbox.cpu_time.field(self._spare.pid))
        if self._config.get("sealed"):
            from . import seal  # loaded only here

            checks.update(seal.shut(self._channel.fd))
        version = ".".join(str(n) for n in sys.version_info[:3])
        self._channel.send({"type": "ready", "protocol": PROTOCOL_VERSION, "python": version, **loaded, "checks": checks})
        while True:
            self._turn()

    def _turn(self):
        self._watcher.wait(self._wait_ms())
        self._check_clocks()
        self._channel.update_write_watch()
        if self._state is RUNNING:
            self._traffic.apply_back_pressure(self._channel.outbox.size)
        elif self._state is FORKING and self._is_growth_due:
            self._is_growth_due = False
            self._sandbox.note_growth()  # the last run is freed, and no part of the next request can have come yet

    def _wait_ms(self):
        if self._end.phase is COLLECTING and self._channel.outbox.size < HIGH_WATER_BYTES:
            return 0
        due = [t for t in (self._zygote.answer_due, self._clock_due(), self._poll_due()) if t is not None]
        if not due:
            return None
        return min(max(0, (min(due) - time.monotonic()) * 1000 + 0.2), MAX_WAIT_MS)

    def _clock_due(self):
        return self._run.clock.due if self._state is RUNNING else None

    def _poll_due(self):
        return self._run.end_poll.due if self._state is RUNNING else None

    def _check_clocks(self):
        now = time.monotonic()
        clock_due, poll_due, answer_due = self._clock_due(), self._poll_due(), self._zygote.answer_due
        if clock_due is not None and now >= clock_due and self._run.clock.advance(now):
            self._end_run("timeout")
        elif poll_due is not None and now >= poll_due:
            if self._run.end_poll.finds_end(now):
                self._end_run(None)
        elif answer_due is not None and now >= answer_due:
            self._zygote.answer_due = None
            # On a slow machine the answer may have arrived without being read.
            if not self._on_zygote():
                self._on_lost_zygote()
        elif self._end.phase is COLLECTING:
            self._end.send_files()

    # ── requests of the host ──────────────────────────────────────────────────────────────────────────────────

    def _on_line(self, line):
        if line.startswith(ANSWER_HEAD) and (self._run is None or line.startswith(self._run.answer_head)):
            if self._state is RUNNING:  # otherwise the answer is late, and may be too large to parse
                self._traffic.pass_answer(line)
        elif line.strip():
            try:
                frame = request_shape.read(line)
            except ValueError as error:  # after an invalid request, the next bytes cannot be trusted
                sys.exit(f"the host sent an invalid request: {error}")
            self._on_request(frame)

    def _on_request(self, frame):
        kind = frame["type"]
        if kind == "ping":
            self._channel.send({"type": "pong", "nonce": frame["nonce"]})
        elif kind == "cancel":
            self._cancel(frame["execution_id"])
        elif kind == "tool_result":
            if self._state is RUNNING and self._run.id == frame["execution_id"]:
                # The id comes first: put_answer looks for it there when there is no room for the answer.
                first = {name: frame[name] for name in ("type", "execution_id", "id")}
                self._traffic.pass_answer(encode({**first, **frame}))
        elif kind == "tool_time":
            if self._state is RUNNING and self._run.id == frame["execution_id"]:  # otherwise the frame is late
                self._run.clock.report(frame["executed_ms"] / 1000, frame["executing"], time.monotonic())
        elif self._state is FORKING:
            self._waiting.append(frame)
        elif kind == "file_put":
            if self._state is IDLE:  # otherwise the `execute` that follows is refused
                self._intake.put(frame)
        elif kind == "execute":
            self._execute(frame)
        elif kind == "check":
            self._execute(build_check_run(frame))
        elif kind == "reset":
            self._reset(frame)

    def _cancel(self, run_id):
        if self._run is not None and self._run.id == run_id:
            if self._state is RUNNING:
                self._end_run("cancelled")
            else:
                self._end.stop_collecting()
        # A request that waits for the spare is dropped together with its files.
        mine = [frame for frame in self._waiting if frame.get("execution_id") == run_id]
        self._waiting = [frame for frame in self._waiting if frame.get("execution_id") != run_id]
        for frame in mine:
            if frame["type"] in ("execute", "check"):
                self._refuse(frame, "cancelled", "the run was cancelled", cause="cancelled", by="host")

    def _refuse(self, frame, kind, message, cause="not-started", by="harness", wiped=False):
        run_id = frame["execution_id"]
        self._channel.send(
            {"type": "error", "execution_id": run_id, "message": message, "traceback": None, "kind": kind}
        )
        clean = wiped or self._sandbox.roots.wipe(WIPE_SEC)
        ending = {"cause": cause, "exit_code": None, "signal": None, "by": by}
        self._channel.send(
            {"type": "script_done", "execution_id": run_id, "ending": ending, "reusable": clean, "use": self._uses}
        )

    # ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _execute(self, frame):
        if self._state is not IDLE:
            return self._refuse(frame, "request", "SANDBOX_BUSY: this sandbox is busy with another run", wiped=True)
        problem = self._problem_of(frame)
        if problem is not None:
            return self._refuse(frame, *problem)
        self._uses += 1
        self._sandbox.reaper.forget()
        harness_pids = (os.getpid(), self._zygote.pid)
        is_set_up = not self._loads and not any(frame.get(name) for name in SETS_UP)
        self._run = run = Run(frame, self._spare, time.monotonic(), self._channel.outbox, harness_pids, is_set_up=is_set_up)
        run.use = self._uses
        run.memory_kills_before = self._sandbox.memory_kills.count()
        self._spare = None
        run.spare.requests += 1
        self._state = RUNNING
        self._traffic = Traffic(run, self._watcher, self._end_run, self._on_finished)
        self._traffic.start()
        return None

    def _problem_of(self, frame):
        if self._checks and not frame.get("check"):
            return "request", "this sandbox only checks scripts"
        return self._intake.problem_of(frame)

    def _on_finished(self):
        """Ends a run whose runtime has finished; its process is still exiting."""
        run = self._run
        if self._checks and not run.reported_error and run.spare.requests < MAX_CHECKS:
            self._state = ENDING
            self._end.keep_process(self._traffic)
            return
        if self._checks:
            run.spare.end_requests()
        elif self._sandbox.shows_ends and run.spare.ends_soon():
            self._end_run(None)
            return
        self._traffic.wait_for_end()

    def _end_run(self, cause):
        """Ends the run. `cause` is None if its process has ended by itself."""
        if self._state is RUNNING:
            self._state = ENDING
            self._end.begin(self._traffic, cause)

    def _on_run_done(self, run):
        self._run = self._traffic = None
        if run.keeps_process:
            self._spare, self._state = run.spare, IDLE
        else:
            self._make_spare()

    # ── between runs ────────────────────────────────────────────────────────────────────────────────────────────

    def _make_spare(self):
        self._state = FORKING
        self._is_growth_due = True
        self._spare = Spare()
        try:
            self._zygote.ask_to_fork(self._spare)
        except OSError:
            os._exit(1)

    def _on_spare(self, pid):
        self._spare.on_fork(pid)
        if not self._sandbox.is_collected():
            self._channel.flush_and_exit()
        self._sandbox.note_resources()
        self._state = IDLE
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            self._on_request(frame)

    def _reset(self, frame):
        if self._state is not IDLE:
            self._channel.send({"type": "reset_done", "nonce": frame["nonce"], "reusable": False})
            return
        self._state = RESETTING
        self._reset_nonce = frame["nonce"]
        self._intake.forget()
        self._zygote.ask_to_kill()

    def _on_all_killed(self):
        clean = self._sandbox.reaper.confirm_death() and self._sandbox.clean()
        self._spare.close()
        self._channel.send({"type": "reset_done", "nonce": self._reset_nonce, "reusable": clean})
        if not clean:
            self._channel.flush_and_exit()
        self._make_spare()

    # ── the zygote ──────────────────────────────────────────────────────────────────────────────────────────────

    def _on_zygote(self, _event=None):
        """Reads the zygote's answer. Returns False when there is none."""
        try:
            number = self._zygote.read_answer()
        except EOFError:
            self._on_zygote_end()
            return False
        if number is None:
            return False
        if self._state is FORKING:
            self._on_spare(number)
        elif self._state is ENDING:
            self._end.on_answer(number)
        elif self._state is RESETTING:
            self._on_all_killed()
        return True

    def _on_zygote_end(self):
        self._watcher.forget(self._zygote.socket.fileno())
        if self._state in (FORKING, RESETTING):
            os._exit(1)
        if self._state is ENDING:
            self._end.on_zygote_end()

    def _on_lost_zygote(self):
        """Handles a zygote that does not answer in time."""
        if self._state is ENDING:
            self._end.on_lost_zygote()
        else:
            self._sandbox.reaper.kill_everything()
            os._exit(1)


def watch_child_signals(watcher, on_end):
    """Calls `on_end()` when a child of this process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the kernel ignores a signal without a handler for PID 1
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    def on_signal(_event):
        try:
            os.read(read, 4096)
        except BlockingIOError:
            pass
        on_end()

    watcher.watch_read(read, on_signal)


def serve(config, channel, zygote_pid, control_fd):
    """Serves until the host closes the channel. Never returns."""
    channel_in, channel_out = channel
    if config.get("sealed"):
        from . import seal  # after the fork of the zygote, which must not get the key

        outbox = seal.SealedOutbox(channel_out, seal.receive_key(channel_in))
    else:
        outbox = GatheringOutbox(channel_out)
    Broker(config, channel_in, outbox, Zygote(zygote_pid, control_fd)).serve()
