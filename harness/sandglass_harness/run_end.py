"""The end of a run: what it started dies, what is left of it is taken, and the last frame is sent."""

import binascii
import os
import time

from .collection import Collection
from .wire import HIGH_WATER

COLLECT_SEC = 5.0  # at most, for looking through the workspace
AFTER_DEADLINE_SEC = 0.3  # of it, what may lie behind the deadline

KILLING, COLLECTING = "killing", "collecting"
CONFIRMING = "confirming"  # that the zygote lives, when all else is done


class RunEnd:
    """The way from the death of a script's process to `script_done`, for one run after the other.

    `look_at_zygote()` takes its answer where it has come already. `done(run)` is called when the last frame is sent and
    the sandbox may serve again.
    """

    def __init__(self, sandbox, channel, look_at_zygote, done):
        self.phase = None  # how far it has come; None when no run is at its end
        self._sandbox = sandbox
        self._zygote = sandbox.zygote
        self._reaper = sandbox.reaper
        self._channel = channel
        self._look_at_zygote = look_at_zygote
        self._done = done
        self._run = self._traffic = self._collection = None

    def begin(self, traffic, cause):
        """The script's process ended (None), or must end for a cause."""
        self._take_over(traffic)
        run, zygote = self._run, self._zygote
        if cause is not None and run.killed_for is None:
            run.killed_for = cause
        run.ended_at = time.monotonic()
        traffic.stop()
        self.phase = KILLING
        if cause is not None:
            self._reaper.kill_group(run.spare.pid)
        alone = cause is None and self._sandbox.was_alone(run.spare.pid)
        if not zygote.answers():
            self.zygote_is_lost()
            return
        if alone and run.finished and self._sandbox.sees_ends:
            run.status = run.spare.exit_status()
        try:
            if run.status is not None:  # nothing runs any more; the zygote waits for it before it forks the next
                zygote.ask_for_a_sign()
            elif alone:
                zygote.ask_to_reap()
            else:
                zygote.ask_to_kill()
        except OSError:
            self.zygote_is_lost()
            return
        if run.status is not None:
            run.awaits_sign = True
            self._settle(True)

    def keep_process(self, traffic):
        """Nothing of the script was executed: its checker serves the next one, too."""
        self._take_over(traffic)
        traffic.stop()
        traffic.drain()
        self._run.well_checked()
        self._finish()

    def on_answer(self, number):
        """The zygote answered what it was asked."""
        if self._run.awaits_sign:
            self._run.awaits_sign = False
            if self.phase is CONFIRMING:
                self._finish()
        elif self.phase is KILLING:
            self._run.status = number
            self._settle(self._reaper.confirm_death())

    def on_zygote_end(self):
        """There will be no answer. While one is due for a kill, the clock says what to do."""
        if self.phase is CONFIRMING:
            self.zygote_is_lost()

    def zygote_is_lost(self):
        """The script stopped or killed the zygote: the broker itself kills, and the sandbox is given up."""
        self._reaper.kill_everything()
        if self.phase is CONFIRMING:
            self._run.awaits_sign = False
            self._finish()
            return
        if self.phase is not KILLING:
            os._exit(1)
        dead = self._reaper.confirm_death()
        self._run.clean = False  # what was found before does not count any more
        self._run.status = self._reaper.status_of(self._run.spare.pid)
        self._settle(dead)

    def send_files(self):
        """While it collects: sends as much as there is room for."""
        while self._channel.outbox.size < HIGH_WATER:
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
        self._channel.watch()

    def stop_collecting(self):
        """Nothing more is wanted."""
        if self.phase is COLLECTING:
            self._collection.stop()

    def _take_over(self, traffic):
        self._run, self._traffic, self._collection = traffic.run, traffic, None

    def _settle(self, confirmed):
        """Everything is dead: what is left in the pipes, then the files, then the last frame."""
        run = self._run
        run.confirmed = confirmed
        self._traffic.drain()
        run.last_words()
        run.spare.close()
        if run.request["collect"]:
            left = run.deadline + AFTER_DEADLINE_SEC - time.monotonic()
            budget = min(max(left, AFTER_DEADLINE_SEC / 2), COLLECT_SEC)
            self._collection = Collection(self._sandbox.config["workspace"], run.request["collect"], budget)
            self._chunks = self._collection.chunks()
            self.phase = COLLECTING
            self.send_files()
        else:
            self._finish()

    def _finish(self):
        run, sandbox = self._run, self._sandbox
        if run.awaits_sign:
            self.phase = CONFIRMING
            self._zygote.expect_sign()
            self._look_at_zygote()  # it may have answered meanwhile, which leads here again
            return
        clean = sandbox.clean() if run.clean is None else run.clean
        reusable = run.confirmed and clean and self._zygote.alive
        if sandbox.config.get("sealed") and self._channel.holds_part_of_a_line():
            reusable = False  # a script can read what comes in there, and half a request may lack its other half
        self._channel.send(self._last_frame(reusable))
        if not reusable:
            self._channel.leave()
        os.sched_yield()  # the host, on a machine where it was woken behind this process
        self.phase = self._run = self._traffic = None
        self._done(run)

    def _last_frame(self, reusable):
        run, collection = self._run, self._collection
        kills = self._sandbox.memory_kills.count()
        counted = {} if kills is None else {"memory_kills": kills - (run.memory_kills_before or 0)}
        return {
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
            "use": run.use,
        }
