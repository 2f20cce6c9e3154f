"""A separate run for each test of how the broker handles a script's process."""

import json
import types
import unittest

from sandglass_harness.broker.run import Run


class Outbox:
    def __init__(self):
        self.data = b""

    def put(self, line):
        self.data += line

    @property
    def frames(self):
        return [json.loads(line) for line in self.data.split(b"\n")[:-1]]


def line(**frame):
    return json.dumps(frame).encode() + b"\n"


def exited(code):
    return code << 8


class RunTestCase(unittest.TestCase):
    maxDiff = None

    def make(self, max_output=1 << 20, timeout=10, pid_fd=-1, is_set_up=False, **request):
        self.outbox = Outbox()
        request = {"execution_id": "e1", "timeout_sec": timeout, "max_output_bytes": max_output, **request}
        # The broker's end of the frame socket is only asked for its number.
        frames = types.SimpleNamespace(fileno=lambda: -1)
        spare = types.SimpleNamespace(socket=frames, out_fd=-1, err_fd=-1, pid=0, pid_fd=pid_fd)
        self.run_ = Run(request, spare, 100.0, self.outbox, is_set_up=is_set_up)
        return self.run_

    def take(self, data, now=101.0, **options):
        run = self.make(**options)
        run.take_frames(data, now)
        return self.outbox.frames
