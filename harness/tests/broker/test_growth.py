import json
import os
import unittest
from unittest import mock

from sandglass_harness.broker import broker

from . import fuzz_broker

REQUEST = {"script": "", "mode": "plan", "timeout_sec": 9, "max_output_bytes": 9999, "inputs": {}, "secrets": {}}


def execute(run_id):
    return {"type": "execute", "execution_id": run_id, **REQUEST, "required_secrets": [], "collect": [], "limits": {}}


class SlowZygote(fuzz_broker.StandInZygote):
    """Forks when it is told to."""

    def ask_to_fork(self, spare):
        self._asked_for = spare

    def fork(self):
        super().ask_to_fork(self._asked_for)


class GrowthTest(unittest.TestCase):
    def setUp(self):
        # What they replace comes back after the test.
        for owner, name in ((broker, "Sandbox"), (broker, "Spare"), (fuzz_broker.OwnSandbox, "roots")):
            patch = mock.patch.object(owner, name)
            patch.start()
            self.addCleanup(patch.stop)
        bench = fuzz_broker.Bench()
        for pid in (bench.alive, bench.dead):
            self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(bench.close)
        with mock.patch.object(fuzz_broker, "StandInZygote", SlowZygote):
            self.case = fuzz_broker.Case({"dead": False, "checker": False}, [], b"", bench)
        self.addCleanup(self.case.close)
        self.broker, self.zygote = self.case._broker, self.case._zygote
        self.broker._channel.open()
        self.broker._watcher.watch_read(self.zygote.socket.fileno(), self.broker._on_zygote)
        self.broker._make_spare()

    def fork(self):
        self.zygote.fork()
        self.case._settle()

    def send(self, frame):
        self.case._host.send(json.dumps(frame).encode() + b"\n")
        self.case._settle()
        self.case._drain()

    def test_the_growth_of_the_broker_is_noted_before_the_next_request_comes_however_slow_the_fork_is(self):
        held = []
        self.broker._sandbox.note_growth = lambda: held.append(len(self.broker._waiting))
        self.fork()
        self.send(execute("r1"))
        self.send({"type": "cancel", "execution_id": "r1"})
        self.assertIn(b'"script_done"', self.case.out)
        self.send(execute("r2"))
        self.assertEqual([frame["execution_id"] for frame in self.broker._waiting], ["r2"])
        self.fork()
        self.assertEqual((held, self.broker._run.id), ([0], "r2"))


if __name__ == "__main__":
    unittest.main()
