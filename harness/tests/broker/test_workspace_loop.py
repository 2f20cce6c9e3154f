"""The loop of a workspace, without processes."""

import os
import resource
import socket
import struct
import unittest

from sandglass_harness.broker import descriptors, keepers
from sandglass_harness.broker.channel import GatheringOutbox
from sandglass_harness.broker.payloads import WorkspaceChannel
from sandglass_harness.broker.program_activity import ProgramActivity
from sandglass_harness.broker.sources import Sources
from sandglass_harness.broker.watcher import Watcher
from sandglass_harness.broker.workspace import Workspace
from sandglass_harness.caps import MAX_WAITING_BYTES


class _Zygote:
    answer_due = None


class WorkspaceLoopTest(unittest.TestCase):
    def setUp(self):
        self.ours, self.host = socket.socketpair()
        for end in (self.ours, self.host):
            end.setblocking(False)
            self.addCleanup(end.close)
        self.workspace = Workspace.__new__(Workspace)
        watcher = Watcher()
        channel = WorkspaceChannel(self.ours.fileno(), GatheringOutbox(self.ours.fileno()), watcher, None)
        parts = {"watcher": watcher, "channel": channel, "sources": Sources(watcher, channel), "zygote": _Zygote()}
        state = {"_activities": {}, "_jobs": [], "_waiting": [], "_spare": None, "_forking": None, "_spare_due": None, "_held_back": False, "_after_flush": []}
        vars(self.workspace).update(parts | state)

    def read_all(self):
        try:
            while self.host.recv(1 << 20):
                pass
        except BlockingIOError:
            pass

    def test_output_that_was_held_back_goes_on_when_the_last_write_of_a_turn_made_room(self):
        workspace = self.workspace
        arm = workspace.sources.arm
        # The host reads while the turn goes on.
        workspace.sources.arm = lambda: (arm(), self.read_all())
        while workspace.channel.outbox.flush():
            workspace.channel.outbox.put(os.urandom(MAX_WAITING_BYTES))
        workspace.channel.outbox.put(bytes(MAX_WAITING_BYTES))
        workspace.watcher.wait = lambda _milliseconds: None
        workspace._turn()
        self.assertEqual((workspace.channel.outbox.size, workspace._wait_ms()), (0, 0))

    def test_an_activity_for_which_no_descriptors_are_left_is_refused_and_the_next_one_begins(self):
        workspace, sent = self.workspace, []
        workspace.channel.send = sent.append
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        held = []
        self.addCleanup(lambda: [os.close(fd) for fd in held])
        while not held or held[-1] < highest:  # no gaps below
            held.append(os.dup(self.ours.fileno()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 1, hard))
        workspace._begin({"type": "dial", "execution_id": "a", "port": 1, "window": 1})
        program = {"type": "start", "execution_id": "b", "timeout_sec": None}
        workspace._begin(program)
        self.assertEqual([(frame["execution_id"], frame["error"]["code"]) for frame in sent], [("a", "busy"), ("b", "busy")])
        waiting = ProgramActivity(workspace, {**program, "execution_id": "c"})
        workspace._activities["c"] = waiting
        workspace.admit(waiting)
        self.assertEqual((sent[-1]["execution_id"], sent[-1]["error"]["code"]), ("c", "busy"))
        self.assertEqual(workspace._activities, {})
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        workspace._begin({"type": "dial", "execution_id": "d", "port": 1, "window": 1})
        self.assertNotIn(("d", "busy"), [(frame["execution_id"], frame.get("error", {}).get("code")) for frame in sent])

    def test_an_activity_is_told_why_there_is_no_process_for_it(self):
        ended = os.fork()
        if ended == 0:
            os._exit(0)
        os.waitpid(ended, 0)
        for said, reason in (
            (struct.pack("=i?", -1, False), "its limit of processes is reached"),
            (b"", "was killed"),  # the keeper is gone
            (struct.pack("=i?", ended, False), "was killed"),  # its process is
        ):
            with self.subTest(said=said):
                workspace, sent = self.workspace, []
                workspace.channel.send = sent.append
                waiting = ProgramActivity(workspace, {"type": "start", "execution_id": "a", "timeout_sec": None})
                workspace._activities["a"], workspace._waiting = waiting, [waiting]
                workspace._forking = spare = keepers.KeptSpare()
                if said:
                    spare._keeper_end.send(said)
                spare.close_child_ends()
                workspace._on_keeper()
                self.assertEqual([frame["error"]["code"] for frame in sent], ["busy"])
                self.assertIn(reason, sent[0]["error"]["message"])
                self.assertIsNone(workspace._forking)

    def test_the_broker_may_use_as_many_descriptors_as_the_hard_limit_says(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
        descriptors.raise_limit()
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (hard, hard))


if __name__ == "__main__":
    unittest.main()
