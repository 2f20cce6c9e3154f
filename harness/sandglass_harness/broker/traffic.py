"""The traffic between the host and the script's process during a run."""

import os
import time

from ..caps import HIGH_WATER_BYTES, LOW_WATER_BYTES
from .watcher import is_writable

DRAIN_SEC = 0.1  # for the output that ended processes left in the pipes
READ_SIZE = 65536
REST_SIZE = 4 << 20  # more than the pipes of a run can hold
REST_READS = 4096  # many, because bytes that were sent with descriptors are read piece by piece
LIVE_READS = 16  # for a process that still runs: enough for a full pipe, and bounded if it keeps writing


class Traffic:
    """Reads and writes the descriptors of one run when they are ready.

    It calls `end(cause)` when the process has ended by itself (None) or must be ended, and `finished()` when its runtime has
    finished normally.
    """

    def __init__(self, run, watcher, end, finished):
        self.run = run
        self._watcher = watcher
        self._end = end
        self._finished = finished
        self._paused = False

    def start(self, body=None):
        """Sends the process its request, and starts to listen. `body` holds the chunks of the request's second part."""
        self.run.to_child.put_request(self.run.make_request(), body)
        self._write()  # first, because the process waits for it
        self._listen(True)

    def pass_answer(self, line):
        """Forwards an answer to a tool call to the script."""
        if not self.run.finished:
            self.run.to_child.put_answer(line)
            self._write()

    def apply_back_pressure(self, unsent):
        """Pauses reading from the script, and nothing else, while the host does not read. `unsent` bytes wait for the host."""
        if self.run.finished:
            return
        overflows = self.run.to_child.overflows
        if not self._paused and (unsent > HIGH_WATER_BYTES or overflows):
            self._paused = True
            self._listen(False)
        elif self._paused and unsent < LOW_WATER_BYTES and not overflows:
            self._paused = False
            self._listen(True)

    def wait_for_end(self):
        """Stops listening once the runtime is done, because each descriptor that its process closes would wake the broker."""
        self._listen(False)
        self.run.end_poll.poll_soon()

    def stop(self):
        """Stops watching all descriptors of the run."""
        spare = self.run.spare
        for fd in (spare.socket.fileno(), spare.pid_fd, *(s.fd for s in self.run.streams)):
            self._watcher.forget(fd)

    def drain(self, reads=REST_READS):
        """Reads the output that ended processes left in the pipes, with at most `reads` reads of each."""
        run = self.run
        run.stop_parsing_at = time.monotonic() + DRAIN_SEC
        if run.killed_for is None:  # so that a run with time left loses no output on a slow machine
            run.stop_parsing_at = max(run.stop_parsing_at, run.deadline)
        for data in _rest(run.spare.socket.fileno(), reads):
            run.take_frames(data, time.monotonic())
        for stream in run.streams:
            for data in _rest(stream.fd, reads):
                run.take_output(stream, data)
            run.take_output(stream, b"", final=True)
        if run.over and run.killed_for is None:
            run.killed_for = "output-limit"

    def _listen(self, on):
        run = self.run
        pairs = [(run.spare.socket.fileno(), self._on_frames)]
        pairs += [(s.fd, lambda event, s=s: self._on_output(s, event)) for s in run.streams]
        for fd, handler in pairs:
            if on:
                self._watcher.watch_read(fd, handler)
            else:
                self._watcher.forget(fd)
        if run.to_child.size:
            self._write()
        if run.spare.pid_fd is not None:
            self._watcher.watch_read(run.spare.pid_fd, lambda _event: self._end(None))

    def _write(self):
        fd = self.run.spare.socket.fileno()
        if self.run.to_child.flush():
            if self._paused:
                self._watcher.forget(fd)
            else:
                self._watcher.watch_read(fd, self._on_frames)
        elif self._paused:
            self._watcher.watch_write(fd, self._on_frames)
        else:
            self._watcher.watch_both(fd, self._on_frames)

    def _on_frames(self, event):
        run = self.run
        if is_writable(event) or self._paused:
            self._write()
        if self._paused:
            return
        data = _read(run.spare.socket.fileno())
        if data is None:
            return
        if not data:
            self._watcher.forget(run.spare.socket.fileno())
            run.end_poll.poll_soon()
            return
        run.take_frames(data, time.monotonic())
        if run.over:
            self._end("output-limit")
        elif run.finished:
            self._finished()

    def _on_output(self, stream, _event):
        data = _read(stream.fd)
        if data is None:
            return
        if not data:
            self._watcher.forget(stream.fd)
            return
        self.run.take_output(stream, data)
        if self.run.over:
            self._end("output-limit")


def _read(fd):
    """Reads bytes. Returns b"" at the end, None if nothing can be read now."""
    try:
        return os.read(fd, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _rest(fd, reads):
    """Yields the rest of a pipe. Bounded, because a process whose end is unconfirmed may still write."""
    left = REST_SIZE
    for _ in range(reads):
        data = _read(fd)
        if not data or left <= 0:
            return
        left -= len(data)
        yield data
