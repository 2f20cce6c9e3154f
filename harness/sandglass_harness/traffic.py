"""What passes between the host and the script's process while a run lasts."""

import os
import time

from .watcher import wants_write
from .wire import HIGH_WATER, LOW_WATER

DRAIN_SEC = 0.1  # for what dead processes left in the pipes
READ_SIZE = 65536
REST_SIZE = 4 << 20  # more than the pipes of a run can hold
REST_READS = 4096  # what was sent with descriptors is read piece by piece


class Traffic:
    """The descriptors of one run, read and written as they are ready.

    `end(cause)` is called when the process ended (None) or must end for a cause, `finished()` when its runtime came to
    its orderly end.
    """

    def __init__(self, run, watcher, end, finished):
        self.run = run
        self._watcher = watcher
        self._end = end
        self._finished = finished
        self._paused = False

    def start(self):
        """Gives the process its request, and listens to it."""
        self._listen(True)
        self.run.to_child.put_request(self.run.order())
        self._write()

    def pass_answer(self, line):
        """The answer to a tool call, on its way to the script."""
        if not self.run.finished:
            self.run.to_child.put_answer(line)
            self._write()

    def apply_back_pressure(self, unsent):
        """A host that does not read stops the reading of the script's descriptors, and nothing else. `unsent` is how many
        bytes wait for it."""
        if self.run.finished:
            return
        overflows = self.run.to_child.overflows
        if not self._paused and (unsent > HIGH_WATER or overflows):
            self._paused = True
            self._listen(False)
        elif self._paused and unsent < LOW_WATER and not overflows:
            self._paused = False
            self._listen(True)

    def wait_for_end(self):
        """The runtime is done: its death closes every descriptor, and each would wake the broker for nothing."""
        self._listen(False)
        self.run.look_soon()

    def stop(self):
        """Waits for nothing of it any more."""
        spare = self.run.spare
        for fd in (spare.socket.fileno(), spare.pid_fd, *(s.fd for s in self.run.streams)):
            self._watcher.forget(fd)

    def drain(self):
        """Takes what dead processes left in the pipes."""
        run = self.run
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

    def _listen(self, on):
        run = self.run
        pairs = [(run.spare.socket.fileno(), self._on_frames)]
        pairs += [(s.fd, lambda event, s=s: self._on_output(s, event)) for s in run.streams]
        for fd, handler in pairs:
            if on:
                self._watcher.reading(fd, handler)
            else:
                self._watcher.forget(fd)
        if run.to_child.size:
            self._write()
        if run.spare.pid_fd is not None:
            self._watcher.reading(run.spare.pid_fd, lambda _event: self._end(None))

    def _write(self):
        fd = self.run.spare.socket.fileno()
        if self.run.to_child.flush():
            if self._paused:
                self._watcher.forget(fd)
            else:
                self._watcher.reading(fd, self._on_frames)
        elif self._paused:
            self._watcher.writing(fd, self._on_frames)
        else:
            self._watcher.both(fd, self._on_frames)

    def _on_frames(self, event):
        run = self.run
        if wants_write(event) or self._paused:
            self._write()
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
    """Bytes, b"" at the end, or None when there is nothing now."""
    try:
        return os.read(fd, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _rest(fd):
    """What is left in a pipe; bounded, because death may be unconfirmed and somebody still writing."""
    left = REST_SIZE
    for _ in range(REST_READS):
        data = _read(fd)
        if not data or left <= 0:
            return
        left -= len(data)
        yield data
