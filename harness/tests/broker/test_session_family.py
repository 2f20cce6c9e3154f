"""Sessions of one keeper, whose part the test plays."""

import json
import os
import signal
import socket
import struct
import subprocess
import unittest
from unittest import mock

from sandglass_harness.broker import integrity, session_copies
from sandglass_harness.broker.cell_activity import CellActivity
from sandglass_harness.broker.keepers import KeptSpare
from sandglass_harness.broker.session_activity import SessionActivity
from sandglass_harness.broker.session_branch import BranchActivity
from sandglass_harness.broker.session_family import SessionFamily
from sandglass_harness.broker.session_operations import SessionLook
from sandglass_harness.broker.session_process import SessionProcess
from sandglass_harness.broker.session_step import KILLING
from sandglass_harness.broker.watcher import Watcher

GONE = struct.pack("=i?", signal.SIGKILL, True)


class Workspace:
    """As much of a workspace as sessions use between two cells."""

    copies_unavailable_reason = "not here"
    outbox = None

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
        for end in (self.keeper, self.spare.control, self.spare.socket, self.spare._child_socket):
            self.addCleanup(end.close)
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
        self.addCleanup(process.close)
        process.pid, process.pid_fd = running.pid, os.pidfd_open(running.pid)
        return process

    def start_branch(self):
        """Starts a branch whose copy has been forked. Returns it, and a function that returns its first command."""
        frame = {"execution_id": "branch", "session": "parent", "checkpoint": None}
        branch = BranchActivity(self.workspace, frame)
        branch._parent, branch.mark = self.parent, self.family.new_mark()
        copy = self.process()
        copy._control_end.setblocking(False)
        branch._start(copy)
        return branch, lambda: copy._control_end.recv(4096)

    def test_two_that_end_at_once_leave_nothing_watched(self):
        for session in (self.parent, self.other):
            session.cancel()
        for _ in range(2):
            self.assertEqual(self.keeper.recv(4096)[:1], b"R")
            self.keeper.send(GONE)
            self.workspace.turn()
        self.assertEqual([frame["type"] for frame in self.workspace.frames], ["activity_done"] * 2)
        self.assertEqual(self.workspace.watcher._masks, {})

    def test_the_order_of_one_that_ends_spares_nothing_of_another_that_is_ending(self):
        self.parent.cancel()
        self.keeper.recv(4096)
        self.other.cancel()
        order = json.loads(self.keeper.recv(4096)[1:])
        self.assertEqual((order["kept"], order["marks"]), ([], []))

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

    def test_a_branch_does_not_wait_for_later_orders(self):
        self.other.cancel()
        branch, first_command = self.start_branch()
        self.family.ask_to_end_others(self.parent, [], 0, 1, lambda: None)
        self.keeper.send(GONE)
        self.workspace.turn()
        self.assertEqual(first_command()[:1], b"H")

    def test_the_socket_of_a_cell_may_exist_before_it_and_is_closed_with_its_process(self):
        before, head = len(os.listdir("/proc/self/fd")), self.process()
        for is_prepared in (True, False):
            if is_prepared:
                head.make_cell_socket()
            head.begin_cell()
            _, (end,), _, _ = socket.recv_fds(head._control_end, 16, 1)
            with head.take_cell_socket() as own, socket.socket(fileno=end) as other:
                own.send(b"request")
                self.assertEqual(other.recv(16), b"request")
        head.make_cell_socket()
        head.close()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_the_memory_of_a_process_counts_without_the_files_that_it_maps(self):
        resident, own = integrity.resident_memory(os.getpid()), session_copies._memory_of(os.getpid())
        found = [session_copies._uses_more_than(size, os.getpid()) for size in (own // 2, (own + resident) // 2, 2 * resident)]
        self.assertEqual(found, [True, False, False])
        self.assertFalse(session_copies._uses_more_than(0, 1 << 30))

    def test_a_copy_that_closes_its_socket_does_not_answer(self):
        branch, _ = self.start_branch()
        branch.head.close_ends()
        self.workspace.turn()
        branch.advance(branch.due)
        self.assertTrue(branch.is_ending)

    def test_an_answer_that_waits_at_the_deadline_counts(self):
        branch, _ = self.start_branch()
        branch.head._control_end.send(b'A{"missing": [], "checkpoint": {"grade": "whole", "lacks": []}}')
        branch.advance(branch.due)
        self.assertFalse(branch.is_ending)
        self.assertEqual(self.workspace.frames[-1]["type"], "session_ready")

    def test_a_checkpoint_of_a_session_whose_processes_are_being_ended_is_refused(self):
        copies, operation, copy = self.parent.copies, mock.Mock(is_over=False), self.process()
        with mock.patch.object(copies, "find_obstacle", return_value=None), mock.patch.object(copies, "fork") as fork:
            copies.keep(operation, {})
        self.parent.step.enter(KILLING, 1)
        fork.call_args.args[1](copy)
        self.assertEqual(operation.fail.call_args.args, ("no_checkpoint", "the process of the session ended meanwhile"))
        self.assertEqual(copies.named_processes(), [])

    def test_a_late_answer_is_none_to_the_next_look(self):
        frame = {"execution_id": "look", "session": "parent", "code": None, "cursor": None}
        look = SessionLook(self.workspace, frame)
        self.parent.operation = look
        for asked_by in ("an earlier one", "look"):
            self.assertEqual(self.workspace.frames, [])
            found = {"variables": [{"name": asked_by, "type": "int"}], "asked_by": asked_by}
            self.parent.head._control_end.send(b"V" + json.dumps(found).encode())
            look._session = self.parent
            self.workspace.turn()
        self.assertEqual([each["name"] for each in self.workspace.frames[0]["result"]], ["look"])

    def test_a_cell_that_comes_while_the_session_ends_tells_it_as_lost(self):
        self.parent.end_as_lost("its process ended")
        cell = CellActivity(self.workspace, {"execution_id": "cell", "session": "parent"})
        cell.refuse(*cell.find_problem())
        self.assertEqual(self.workspace.frames[-1]["cell"]["state"], "lost")

    def test_a_branch_of_a_session_whose_processes_are_being_ended_is_refused(self):
        self.parent.step.enter(KILLING, 1)
        branch, _ = self.start_branch()
        self.assertEqual(self.workspace.frames[-1]["error"]["code"], "no_checkpoint")
        self.assertTrue(branch.is_over)
        self.assertNotIn(branch, self.family.members)


if __name__ == "__main__":
    unittest.main()
