"""Ends a run: kills its processes, reads the rest of its output, collects files and sends the last frame."""

import binascii
import os
import time

from ..caps import COLLECT_AFTER_DEADLINE_SEC, COLLECT_SEC, HIGH_WATER_BYTES
from .collection import Collection
from .processes import SOCKETS_OF_SPARE

KILLING, COLLECTING = "killing", "collecting"
CONFIRMING = "confirming"  # the last step: waits for the zygote's answer to a ping


class RunEnd:
    """Ends one run after the other, from the death of the script's process to `script_done`.

    `poll_zygote()` reads the zygote's answer if it has arrived. `done(run)` is called once the last frame is sent and the sandbox
    may serve again.
    """

    def __init__(self, sandbox, channel, poll_zygote, done):
        self.phase = None  # None when no run is ending
        self._sandbox = sandbox
        self._zygote = sandbox.zygote
        self._reaper = sandbox.reaper
        self._channel = channel
        self._poll_zygote = poll_zygote
        self._done = done
        self._run = self._traffic = self._collection = None

    def begin(self, traffic, cause):
        """Begins to end a run. `cause` is None if its process has ended by itself."""
        self._take_over(traffic)
        run, zygote = self._run, self._zygote
        if cause is not None and run.killed_for is None:
            run.killed_for = cause
        run.ended_at = time.monotonic()
        traffic.stop()
        self.phase = KILLING
        if cause is not None:
            self._reaper.kill_group(run.spare.pid)
        alone = cause is None and self._sandbox.left_no_process(run.spare.pid)
        if not zygote.is_running():
            self.on_lost_zygote()
            return
        if alone and run.finished and self._sandbox.shows_ends:
            run.status = run.spare.exit_status()
        try:
            if run.status is not None:  # the process has ended; the zygote reaps it before the next fork
                zygote.ping()
            elif alone:
                zygote.ask_to_reap()
            else:
                zygote.ask_to_kill()
        except OSError:
            self.on_lost_zygote()
            return
        if run.status is not None:
            run.awaits_pong = True
            self._finish_output(True)

    def keep_process(self, traffic):
        """Keeps the process for the next check, because no part of the script was executed."""
        self._take_over(traffic)
        traffic.stop()
        traffic.drain()
        self._run.mark_check_done()
        self._finish()

    def on_answer(self, number):
        """Handles an answer of the zygote."""
        if self._run.awaits_pong:
            self._run.awaits_pong = False
            if self.phase is CONFIRMING:
                self._finish()
        elif self.phase is KILLING:
            self._run.status = number
            self._finish_output(self._reaper.confirm_death())

    def on_zygote_end(self):
        """Handles the end of the zygote. During a kill, the time limit for its answer handles it."""
        if self.phase is CONFIRMING:
            self.on_lost_zygote()

    def on_lost_zygote(self):
        """Kills every process, because the script has stopped or killed the zygote. The sandbox ends."""
        self._reaper.kill_everything()
        if self.phase is CONFIRMING:
            self._run.awaits_pong = False
            self._finish()
            return
        if self.phase is not KILLING:
            os._exit(1)
        dead = self._reaper.confirm_death()
        self._run.clean = False  # an earlier check is no longer valid
        self._run.status = self._reaper.status_of(self._run.spare.pid)
        self._finish_output(dead)

    def send_files(self):
        """Sends collected files as long as the outbox has room."""
        while self._channel.outbox.size < HIGH_WATER_BYTES:
            try:
                chunk = next(self._chunks)
            except StopIteration:
                self._finish()
                return
            if chunk is None:  # a pause, so that the broker's loop continues
                return
            self._run.emit(file_frame(*chunk), counted=False)
        self._channel.update_write_watch()

    def stop_collecting(self):
        """Ends the collection early."""
        if self.phase is COLLECTING:
            self._collection.stop()

    def _take_over(self, traffic):
        self._run, self._traffic, self._collection = traffic.run, traffic, None

    def _finish_output(self, confirmed):
        """Reads the rest of the pipes, collects the files and sends the last frame. No process of the run is left if
        `confirmed`."""
        run = self._run
        run.confirmed = confirmed
        self._traffic.drain()
        run.send_final_error()
        run.spare.close()
        if run.request["collect"]:
            self._collection = collection_of(run, self._sandbox.config["workspace"])
            self._chunks = self._collection.chunks()
            self.phase = COLLECTING
            self.send_files()
        else:
            self._finish()

    def _finish(self):
        run, sandbox = self._run, self._sandbox
        if run.awaits_pong:
            self.phase = CONFIRMING
            self._zygote.expect_pong()
            run.clean = sandbox.clean()  # meanwhile the zygote answers; no code of the script runs any more
            self._poll_zygote()  # its answer may have arrived; then this calls _finish again
            return
        clean = sandbox.clean(0 if run.keeps_process else SOCKETS_OF_SPARE) if run.clean is None else run.clean
        reusable = run.confirmed and clean and self._zygote.alive
        if sandbox.config.get("sealed") and self._channel.holds_part_of_a_line():
            reusable = False  # a script can read that descriptor, and may have consumed the rest of a request
        self._channel.send(self._last_frame(reusable))
        if not reusable:
            self._channel.flush_and_exit()
        os.sched_yield()  # lets the host run at once if both share a CPU
        self.phase = self._run = self._traffic = None
        self._done(run)

    def _last_frame(self, reusable):
        frame = last_frame(self._run, self._collection, self._sandbox.memory_kills.count(), reusable)
        return {**frame, **self._sandbox.cpu_time.field(self._run.spare.pid)}


def collection_of(run, workspace):
    """Creates the collection of the files that a run asked for."""
    left = run.deadline + COLLECT_AFTER_DEADLINE_SEC - time.monotonic()
    budget = min(max(left, COLLECT_AFTER_DEADLINE_SEC / 2), COLLECT_SEC)
    limits = run.request.get("collect_limits") or {}
    return Collection(workspace, run.request["collect"], budget, limits)


def file_frame(path, size, offset, data):
    """Creates the frame for a chunk of a collected file."""
    content = binascii.b2a_base64(data, newline=False).decode()
    return {"type": "file", "path": path, "size": size, "offset": offset, "content_base64": content}


def last_frame(run, collection, memory_kills, reusable):
    """Creates the last frame of a run. `memory_kills` is the number of OOM kills in the sandbox so far; None if it is unknown."""
    counted = {} if memory_kills is None else {"memory_kills": memory_kills - (run.memory_kills_before or 0)}
    return {
        "type": "script_done",
        "execution_id": run.id,
        "ending": run.ending(),
        "duration_ms": round((time.monotonic() - run.started) * 1000, 3),
        "stdout_bytes": run.streams[0].bytes,
        "stderr_bytes": run.streams[1].bytes,
        "limits_hit": collection.limits_hit if collection else [],
        "warnings": [*run.displays.warnings, *(collection.warnings if collection else [])],
        **counted,
        **({"in_setup": True} if run.ended_in_setup else {}),
        **({"imported": run.imported} if run.imported else {}),
        "reusable": reusable,
        "use": run.use,
    }
