"""The loop of a workspace, without processes."""

import os
import socket
import unittest

from sandglass_harness.broker.payloads import GatheringOutbox, WorkspaceChannel
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
        state = {"_activities": {}, "_jobs": [], "_spare_due": None, "_held_back": False}
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


if __name__ == "__main__":
    unittest.main()
