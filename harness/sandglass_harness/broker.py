"""PID 1 of a sandbox: serves the host's requests, and is out of every script's reach.

It runs no script and imports nothing of others. One loop over descriptors; nothing in it blocks on a peer.
"""

import binascii
import json
import os
import select
import signal
import struct
import sys
import time

from . import PROTOCOL_VERSION, integrity
from .collection import Collection
from .control_group import MemoryKills
from .intake import WIPE_SEC, Intake
from .processes import Spare, Zygote
from .reaper import Reaper
from .run import ANSWER_HEAD, Run, as_run
from .scratch import Roots
from .syscalls import PR_SET_TIMERSLACK, prctl
from .watcher import Watcher, wants_write
from .wire import HIGH_WATER, LOW_WATER, MAX_REQUEST_LINE, LineBuffer, Outbox, encode

ANSWER_SEC = 0.5  # how long the zygote may take to answer
DRAIN_SEC = 0.1  # for what dead processes left in the pipes
COLLECT_SEC = 5.0  # at most, for looking through the workspace
AFTER_DEADLINE_SEC = 0.3  # of it, what may lie behind the deadline
READ_SIZE = 65536
LOOKS, LOOK_AGAIN_SEC = 8, 0.00006  # at a process that said that it is done
MAX_CHECKS = 200  # by one process; a new one gives back what the interpreter keeps
REST_SIZE = 4 << 20  # more than the pipes of a run can hold

IDLE, FORKING, RUNNING, KILLING, COLLECTING, RESETTING = "idle", "forking", "running", "killing", "collecting", "resetting"
CONFIRMING = "confirming"  # that the zygote lives, when all else is done


class Broker:
    """The one loop of PID 1, and the state between its turns."""

    def __init__(self, config, channel_in, outbox, zygote):
        self._config = config
        self._in = channel_in
        self._inbox = LineBuffer()
        self._outbox = outbox
        self._zygote = zygote
        self._watcher = Watcher()
        self._state = FORKING
        self._waiting = []  # requests that wait for the spare
        self._run = None
        self._spare = None
        self._uses = 0
        self._answer_due = None
        self._reset_nonce = None
        self._collection = None
        self._reaper = Reaper(zygote)
        self._paused = False

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self):
        """Until the host closes the channel. Never returns."""
        leaked_fds = _open_fds_above(2) - {self._in, self._outbox.fd, self._zygote.socket.fileno()}
        self._checks = self._config.get("checker", False)
        self._roots = Roots(self._config["scratch"])
        self._intake = Intake(self._config["workspace"], self._roots)
        # Not in gVisor: a child of PID 1's own would pass for something that a preloaded module left.
        tells_exit_status = not self._config.get("sealed") and integrity.tells_exit_status()
        self._memory_kills = MemoryKills()
        self._watch_signals()
        loaded = self._zygote.first_words()
        self._watcher.reading(self._in, self._on_channel)
        self._watcher.reading(self._zygote.socket.fileno(), self._on_zygote)
        self._make_spare()
        while self._state is FORKING:
            self._turn()
        self._normal = integrity.snapshot([os.getpid(), self._zygote.pid])
        self._loadavg = integrity.open_proc("loadavg")
        self._last_pid_moves = integrity.last_pid(self._loadavg) == self._spare.pid
        # Only the last pid tells of threads, too.
        self._sees_ends = tells_exit_status and self._last_pid_moves
        if self._sees_ends:
            prctl(PR_SET_TIMERSLACK, 1)  # ns; by default a sleep takes 50 us more
        checks = integrity.self_check(self._zygote.pid, self._config["scratch"], len(leaked_fds))
        checks["last_pid_moves"] = self._last_pid_moves
        self._zygote.kills_at_once = self._reaper.kills_at_once = not checks["gvisor"]
        if self._config.get("sealed"):
            from . import seal  # others need not load it

            checks.update(sealed=True, input_shut=not seal.takes_writes(self._in))
            os.dup2(0, 2)  # what scripts could open is not left to them to write to
        version = ".".join(str(n) for n in sys.version_info[:3])
        self._send({"type": "ready", "protocol": PROTOCOL_VERSION, "python": version, **loaded, "checks": checks})
        while True:
            self._turn()

    def _turn(self):
        self._watcher.wait(self._wait_ms())
        self._look_at_clocks()
        self._apply_back_pressure()

    def _wait_ms(self):
        if self._state is COLLECTING and self._outbox.size < HIGH_WATER:
            return 0
        due = [t for t in (self._answer_due, self._kill_at(), self._look_at()) if t is not None]
        if not due:
            return None
        return max(0, (min(due) - time.monotonic()) * 1000 + 0.2)

    def _kill_at(self):
        run = self._run
        return run.kill_at if run is not None and self._state is RUNNING else None

    def _look_at(self):
        run = self._run
        return run.look_at if run is not None and self._state is RUNNING else None

    def _look_at_clocks(self):
        now = time.monotonic()
        kill_at, look_at = self._kill_at(), self._look_at()
        if kill_at is not None and now >= kill_at:
            self._end_run("timeout")
        elif look_at is not None and now >= look_at:
            if integrity.has_ended(self._run.spare.pid):
                self._end_run(None)
            else:
                self._run.look_later(now)
        elif self._answer_due is not None and now >= self._answer_due:
            self._answer_due = None
            # On a slow machine the answer may lie there, unread.
            if not self._on_zygote(None):
                self._zygote_is_lost()
        elif self._state is COLLECTING:
            self._send_files()

    def _watch_signals(self):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as PID 1 without a handler: no effect
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._watcher.reading(read, lambda _event: self._on_child_signal(read))

    def _on_child_signal(self, fd):
        try:
            os.read(fd, 4096)
        except BlockingIOError:
            pass
        self._reaper.reap()

    # ── channel ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, frame):
        self._outbox.put(encode(frame))
        self._watch_outbox()

    def _watch_outbox(self):
        if self._outbox.size:
            self._watcher.writing(self._outbox.fd, self._on_writable)
        else:
            self._watcher.forget(self._outbox.fd)

    def _on_writable(self, _event):
        self._outbox.flush()
        self._watch_outbox()

    def _apply_back_pressure(self):
        """A host that does not read stops the reading of the script's descriptors, and nothing else."""
        self._watch_outbox()
        if self._run is None or self._state is not RUNNING or self._run.finished:
            return
        overflows = self._run.to_child.overflows
        if not self._paused and (self._outbox.size > HIGH_WATER or overflows):
            self._paused = True
            self._watch_run(False)
        elif self._paused and self._outbox.size < LOW_WATER and not overflows:
            self._paused = False
            self._watch_run(True)

    def _on_channel(self, _event):
        try:
            data = os.read(self._in, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)  # the host is gone: PID 1 takes everything with it
        for line in self._inbox.push(data):
            if line.startswith(ANSWER_HEAD) and (self._run is None or line.startswith(self._run.answer_head)):
                if self._run is not None:  # else it comes too late, and may be too large to be looked at
                    self._answer_child(line)
            elif line.strip():
                self._on_request(json.loads(line))
        if self._inbox.held > MAX_REQUEST_LINE:
            sys.exit("a request line is too long")

    def _on_request(self, frame):
        kind = frame["type"]
        if kind == "ping":
            self._send({"type": "pong", "nonce": frame["nonce"]})
        elif kind == "cancel":
            if self._run is not None and self._run.id == frame["execution_id"] and self._state is RUNNING:
                self._end_run("cancelled")
            elif self._run is not None and self._run.id == frame["execution_id"] and self._state is COLLECTING:
                self._collection.stop()
            self._cancel_waiting(frame["execution_id"])
        elif kind == "tool_result":
            if self._run is not None and self._run.id == frame["execution_id"]:
                self._answer_child(encode(frame))
        elif self._state is FORKING:
            self._waiting.append(frame)
        elif kind == "file_put":
            if self._state is IDLE:  # during a run its `execute` will be refused
                self._intake.put(frame)
        elif kind == "execute":
            self._execute(frame)
        elif kind == "check":
            self._execute(as_run(frame))
        elif kind == "reset":
            self._reset(frame)

    def _answer_child(self, line):
        run = self._run
        if self._state is not RUNNING or run.finished:
            return
        run.to_child.put_answer(line)
        self._write_to_child(run)

    def _cancel_waiting(self, run_id):
        """A run that waits for the spare: its files are dropped, too."""
        mine = [frame for frame in self._waiting if frame.get("execution_id") == run_id]
        self._waiting = [frame for frame in self._waiting if frame.get("execution_id") != run_id]
        for frame in mine:
            if frame["type"] in ("execute", "check"):
                self._refuse(frame, "cancelled", "the run was cancelled", cause="cancelled", by="host")

    # ── the start of a run ──────────────────────────────────────────────────────────────────────────────────────

    def _execute(self, frame):
        if self._run is not None or self._state is not IDLE:
            return self._refuse(frame, "request", "SANDBOX_BUSY: this sandbox is busy with another run", wiped=True)
        problem = self._problem_of(frame)
        if problem is not None:
            return self._refuse(frame, *problem)
        self._uses += 1
        self._reaper.forget()
        self._run = run = Run(frame, self._spare, time.monotonic(), self._outbox)
        run.memory_kills_before = self._memory_kills.count()
        self._spare = None
        run.spare.requests += 1
        self._state = RUNNING
        self._paused = False
        self._watch_run(True)
        run.to_child.put_request(run.order())
        self._write_to_child(run)
        return None

    def _problem_of(self, frame):
        if self._checks and not frame.get("check"):
            return "request", "this sandbox is there to check scripts; it runs none"
        return self._intake.problem_of(frame)

    def _refuse(self, frame, kind, message, cause="not-started", by="harness", wiped=False):
        run_id = frame["execution_id"]
        self._send(
            {"type": "error", "execution_id": run_id, "message": message, "traceback": None, "kind": kind}
        )
        clean = wiped or self._roots.wipe(WIPE_SEC)
        ending = {"cause": cause, "exit_code": None, "signal": None, "by": by}
        self._send(
            {"type": "script_done", "execution_id": run_id, "ending": ending, "reusable": clean, "use": self._uses}
        )

    def _write_to_child(self, run):
        fd = run.spare.socket.fileno()
        if run.to_child.flush():
            if self._paused:
                self._watcher.forget(fd)
            else:
                self._watcher.reading(fd, self._on_frames)
        elif self._paused:
            self._watcher.writing(fd, self._on_frames)
        else:
            self._watcher.both(fd, self._on_frames)

    # ── during a run ────────────────────────────────────────────────────────────────────────────────────────────

    def _watch_run(self, on):
        run = self._run
        pairs = [(run.spare.socket.fileno(), self._on_frames)]
        pairs += [(s.fd, lambda event, s=s: self._on_output(s, event)) for s in run.streams]
        for fd, handler in pairs:
            if on:
                self._watcher.reading(fd, handler)
            else:
                self._watcher.forget(fd)
        if run.to_child.size:
            self._write_to_child(run)
        if run.spare.pid_fd is not None:
            self._watcher.reading(run.spare.pid_fd, lambda _event: self._end_run(None))

    def _on_frames(self, event):
        run = self._run
        if wants_write(event) or self._paused:
            self._write_to_child(run)
        if self._paused:
            return
        data = _read(run.spare.socket.fileno())
        if data is None:
            return
        if not data:
            self._watcher.forget(run.spare.socket.fileno())
            run.look_soon()
            return
        run.take_frames(data, time.monotonic())
        if run.over:
            self._end_run("output-limit")
        elif run.finished:
            self._on_finished(run)

    def _on_finished(self, run):
        """The runtime came to its orderly end; what is left of it is its process."""
        if self._checks and not run.told_error and run.spare.requests < MAX_CHECKS:
            return self._keep_checking(run)
        if self._checks:
            run.spare.no_more_requests()
        elif self._sees_ends and self._ends_at_once(run):
            return self._end_run(None)
        self._watch_run(False)  # its death closes every descriptor; each would wake the broker for nothing
        run.look_soon()
        return None

    def _ends_at_once(self, run):
        """Looks for the end of a process while that is usually near: the kernel tells of it when all memory is back.

        Asleep between two looks, because the child's last word woke the broker on the child's own processor.
        """
        for _ in range(LOOKS):
            time.sleep(LOOK_AGAIN_SEC)
            if integrity.exit_status(run.spare.stat_fd) is not None:
                return True
        return False

    def _keep_checking(self, run):
        """Nothing of the script was executed: its checker serves the next one, too."""
        self._unwatch_run(run)
        self._drain(run)
        run.well_checked()
        self._collection = None
        self._finish()

    def _on_output(self, stream, _event):
        data = _read(stream.fd)
        if data is None:
            return
        if not data:
            self._watcher.forget(stream.fd)
            return
        self._run.take_output(stream, data)
        if self._run.over:
            self._end_run("output-limit")

    # ── the end of a run ────────────────────────────────────────────────────────────────────────────────────────

    def _end_run(self, cause):
        """The script's process ended (None), or must end for a cause."""
        run = self._run
        if run is None or self._state is not RUNNING:
            return
        if cause is not None and run.killed_for is None:
            run.killed_for = cause
        run.ended_at = time.monotonic()
        self._unwatch_run(run)
        self._state = KILLING
        if cause is not None:
            self._reaper.kill_group(run.spare.pid)
        alone = cause is None and self._was_alone(run.spare.pid)
        if not self._zygote.answers():
            self._zygote_is_lost()
            return
        if alone and run.finished and self._sees_ends:
            run.status = integrity.exit_status(run.spare.stat_fd)
        try:
            if run.status is not None:  # nothing runs any more; the zygote waits for it before it forks the next
                self._zygote.ask_for_a_sign()
            elif alone:
                self._zygote.ask_to_reap()
            else:
                self._zygote.ask_to_kill()
        except OSError:
            self._zygote_is_lost()
            return
        if run.status is None:
            self._answer_due = time.monotonic() + ANSWER_SEC
        else:
            run.awaits_sign = True
            self._settle(True)

    def _was_alone(self, pid):
        """Whether nothing is left that this process started; it is a zombie itself."""
        if self._last_pid_moves:  # it keeps its pid, so the last one can only be its own when nothing else was started
            return integrity.last_pid(self._loadavg) == pid
        return integrity.nobody_but([os.getpid(), self._zygote.pid, pid])

    def _unwatch_run(self, run):
        for fd in (run.spare.socket.fileno(), run.spare.pid_fd, *(s.fd for s in run.streams)):
            self._watcher.forget(fd)

    def _on_zygote(self, _event):
        """Takes the zygote's answer. False when there is none."""
        answer = self._zygote.answer()
        if answer is None:
            return False
        if len(answer) != 4:
            self._watcher.forget(self._zygote.socket.fileno())
            if self._state in (FORKING, RESETTING):
                os._exit(1)
            if self._state is CONFIRMING:
                self._zygote_is_lost()
            return False
        self._answer_due = None
        (number,) = struct.unpack("=i", answer)
        if self._run is not None and self._run.awaits_sign:
            self._run.awaits_sign = False
            if self._state is CONFIRMING:
                self._finish()
        elif self._state is FORKING:
            self._spare_is_there(number)
        elif self._state is KILLING:
            self._run.status = number
            self._settle(self._reaper.confirm_death())
        elif self._state is RESETTING:
            self._reset_done()
        return True

    def _zygote_is_lost(self):
        """The script stopped or killed the zygote: the broker itself kills, and the sandbox is given up."""
        self._reaper.kill_everything()
        self._zygote.alive = False
        if self._state is CONFIRMING:
            self._run.awaits_sign = False
            self._finish()
            return
        if self._state is not KILLING:
            os._exit(1)
        dead = self._reaper.confirm_death()
        self._run.clean = False  # what was found before does not count any more
        self._run.status = self._reaper.status_of(self._run.spare.pid)
        self._settle(dead)

    def _settle(self, confirmed):
        """Everything is dead: what is left in the pipes, then the files, then the last frame."""
        run = self._run
        run.confirmed = confirmed
        self._drain(run)
        run.last_words()
        run.spare.close()
        if run.request["collect"]:
            left = run.deadline + AFTER_DEADLINE_SEC - time.monotonic()
            budget = min(max(left, AFTER_DEADLINE_SEC / 2), COLLECT_SEC)
            self._collection = Collection(self._config["workspace"], run.request["collect"], budget)
            self._chunks = self._collection.chunks()
            self._state = COLLECTING
            self._send_files()
        else:
            self._collection = None
            self._finish()

    def _drain(self, run):
        """Takes what dead processes left in the pipes."""
        run.stop_parsing_at = time.monotonic() + DRAIN_SEC
        if run.killed_for is None:  # on a slow machine nothing is lost of a run that still has time
            run.stop_parsing_at = max(run.stop_parsing_at, run.deadline)
        for data in _rest(run.spare.socket.fileno()):
            run.take_frames(data, time.monotonic())
        for stream in run.streams:
            for data in _rest(stream.fd):
                run.take_output(stream, data)
            run.take_output(stream, b"", final=True)
        if run.over and run.killed_for is None:
            run.killed_for = "output-limit"

    def _is_clean(self):
        """Whether nothing is left on the file systems, and broker and zygote are as they were."""
        return self._roots.wipe(WIPE_SEC) and self._is_unchanged()

    def _is_unchanged(self):
        return self._zygote.alive and integrity.snapshot([os.getpid(), self._zygote.pid]) == self._normal

    def _send_files(self):
        while self._outbox.size < HIGH_WATER:
            try:
                chunk = next(self._chunks)
            except StopIteration:
                self._finish()
                return
            if chunk is None:  # a pause, so that nothing else has to wait
                return
            path, size, offset, data = chunk
            content = binascii.b2a_base64(data, newline=False).decode()
            frame = {"type": "file", "path": path, "size": size, "offset": offset, "content_base64": content}
            self._run.emit(frame, counted=False)
        self._watch_outbox()

    def _finish(self):
        run, collection = self._run, self._collection
        if run.awaits_sign:
            self._state, self._answer_due = CONFIRMING, time.monotonic() + ANSWER_SEC
            self._on_zygote(None)  # it may have come meanwhile, and calls this again
            return
        clean = self._is_clean() if run.clean is None else run.clean
        reusable = run.confirmed and clean and self._zygote.alive
        if self._config.get("sealed") and self._inbox.held:
            reusable = False  # a script can read what comes in there, and half a request may lack its other half
        kills = self._memory_kills.count()
        counted = {} if kills is None else {"memory_kills": kills - (run.memory_kills_before or 0)}
        self._run = None
        self._send(
            {
                "type": "script_done",
                "execution_id": run.id,
                "ending": run.ending(),
                "duration_ms": round((time.monotonic() - run.started) * 1000, 3),
                "stdout_bytes": run.streams[0].bytes,
                "stderr_bytes": run.streams[1].bytes,
                "limits_hit": collection.limits_hit if collection else [],
                "warnings": collection.warnings if collection else [],
                **counted,
                "reusable": reusable,
                "use": self._uses,
            }
        )
        if not reusable:
            self._leave()
        os.sched_yield()  # the host, on a machine where it was woken behind this process
        if run.keeps_process:
            self._spare, self._state = run.spare, IDLE
        else:
            self._make_spare()

    def _leave(self):
        """Gives the sandbox up, once the host has the last frame."""
        deadline = time.monotonic() + 5
        while not self._outbox.flush() and time.monotonic() < deadline:
            select.select([], [self._outbox.fd], [], 0.1)
        os._exit(0)

    # ── between runs ────────────────────────────────────────────────────────────────────────────────────────────

    def _make_spare(self):
        self._state = FORKING
        self._spare = Spare()
        try:
            self._zygote.ask_for(self._spare)
        except OSError:
            os._exit(1)
        self._answer_due = time.monotonic() + ANSWER_SEC * 10

    def _spare_is_there(self, pid):
        self._spare.forked_as(pid)
        self._state = IDLE
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            self._on_request(frame)

    def _reset(self, frame):
        if self._state is not IDLE:
            self._send({"type": "reset_done", "nonce": frame["nonce"], "reusable": False})
            return
        self._state = RESETTING
        self._reset_nonce = frame["nonce"]
        self._intake.forget()
        self._zygote.ask_to_kill()
        self._answer_due = time.monotonic() + ANSWER_SEC

    def _reset_done(self):
        clean = self._reaper.confirm_death() and self._is_clean()
        self._spare.close()
        self._send({"type": "reset_done", "nonce": self._reset_nonce, "reusable": clean})
        if not clean:
            self._leave()
        self._make_spare()


def _read(fd):
    """Bytes, b"" at the end, or None when there is nothing now."""
    try:
        return os.read(fd, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _rest(fd):
    """What is left in a pipe; bounded, because death may be unconfirmed and somebody still writing."""
    for _ in range(REST_SIZE // READ_SIZE):
        data = _read(fd)
        if not data:
            return
        yield data


def _open_fds_above(lowest):
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))  # the descriptor of the listing itself is gone by now
        except OSError:
            continue
        if int(name) > lowest:
            found.add(int(name))
    return found


def serve(config, channel, zygote_pid, control_fd):
    """Serves until the host closes the channel. Never returns."""
    channel_in, channel_out = channel
    if config.get("sealed"):
        from . import seal  # after the fork of the zygote, which must not have the key

        outbox = seal.SealedOutbox(channel_out, seal.receive_key(channel_in))
    else:
        outbox = Outbox(channel_out)
    Broker(config, channel_in, outbox, Zygote(zygote_pid, control_fd)).serve()
