"""Sessions of one keeper, whose part the test plays."""

import json
import os
import signal
import struct
import subprocess
import unittest

from sandglass_harness.broker.keepers import KeptSpare
from sandglass_harness.broker.session_activity import KILLING, SessionActivity
from sandglass_harness.broker.session_branch import BranchActivity
from sandglass_harness.broker.session_family import SessionFamily
from sandglass_harness.broker.session_process import SessionProcess
from sandglass_harness.broker.watcher import Watcher

GONE = struct.pack("=i?", signal.SIGKILL, True)


class Workspace:
    """As much of a workspace as sessions use between two cells."""

    copies_unavailable_reason = "not here"

    def __init__(self):
        self.watcher, self.channel = Watcher(), self
        self.frames, self.sessions, self._after_flush = [], {}, []

    def send(self, frame):
        self.frames.append(frame)

    def session(self, name):
        return self.sessions.get(name)

    def after_flush(self, callback):
        self._after_flush.append(callback)

    def on_over(self, _activity):
        pass

    def turn(self):
        self.watcher.wait(100)
        callbacks, self._after_flush = self._after_flush, []
        for callback in callbacks:
            callback()


class SessionFamilyTest(unittest.TestCase):
    def setUp(self):
        self.workspace = Workspace()
        self.spare = KeptSpare()
        self.keeper = self.spare._keeper_end
        self.family = SessionFamily(self.spare)
        self.spare.watch(self.workspace.watcher, self.family.on_keeper)
        self.parent = self.join(SessionActivity(self.workspace, {"execution_id": "parent", "checkpoints": False}))
        self.other = self.join(SessionActivity(self.workspace, {"execution_id": "other", "checkpoints": False}))
        self.other.mark = 5

    def join(self, session):
        session.join(self.family)
        session.head = self.process()
        session.listen(session.head)
        self.workspace.sessions[session.id] = session
        return session

    def process(self):
        running = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        process = SessionProcess()
        process.pid, process.pid_fd = running.pid, os.pidfd_open(running.pid)
        return process

    def start_branch(self):
        """Starts a branch whose copy has been forked. Returns it, and a function that returns its first command."""
        frame = {"execution_id": "branch", "session": "parent", "checkpoint": None}
        branch = BranchActivity(self.workspace, frame)
        branch._parent, branch.mark = self.parent, self.family.new_mark()
        copy = self.process()
        end = copy._control_end
        end.setblocking(False)
        branch._start(copy)
        return branch, lambda: end.recv(4096)

    def test_two_that_end_at_once_leave_nothing_watched(self):
        for session in (self.parent, self.other):
            session.cancel()
        for _ in range(2):
            self.assertEqual(self.keeper.recv(4096)[:1], b"R")
            self.keeper.send(GONE)
            self.workspace.turn()
        self.assertEqual([frame["type"] for frame in self.workspace.frames], ["activity_done"] * 2)
        self.assertEqual(self.workspace.watcher._masks, {})

    def test_a_branch_gets_its_own_mark_only_after_the_orders_that_do_not_know_it(self):
        self.other.cancel()
        order = json.loads(self.keeper.recv(4096)[1:])
        branch, first_command = self.start_branch()
        self.assertNotIn(branch.head.pid, order["kept"])
        self.assertNotIn(branch.mark, order["marks"])
        with self.assertRaises(BlockingIOError):
            first_command()
        self.keeper.send(GONE)
        self.workspace.turn()
        self.assertEqual(first_command()[:1], b"H")
        self.assertFalse(branch.is_over)

    def test_a_branch_of_a_session_whose_processes_are_being_ended_is_refused(self):
        self.parent._enter(KILLING, 1)
        branch, _ = self.start_branch()
        self.assertEqual(self.workspace.frames[-1]["error"]["code"], "no_checkpoint")
        self.assertTrue(branch.is_over)
        self.assertNotIn(branch, self.family.members)


if __name__ == "__main__":
    unittest.main()
