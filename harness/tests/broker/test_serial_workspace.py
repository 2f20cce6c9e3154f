"""The activities that can be beside each other in a serial workspace, and the process of a session without a pidfd."""

import os
import signal
import unittest

from sandglass_harness.broker.cell_activity import CellActivity
from sandglass_harness.broker.program_activity import ProgramActivity
from sandglass_harness.broker.script_activity import ScriptActivity
from sandglass_harness.broker.serial_workspace import SerialWorkspace
from sandglass_harness.broker.session_activity import SessionActivity
from sandglass_harness.broker.session_operations import SessionLook
from sandglass_harness.broker.session_process import SessionProcess
from sandglass_harness.broker.transfer import FileStat

KINDS = {
    "session": SessionActivity,
    "cell": CellActivity,
    "look": SessionLook,
    "script": ScriptActivity,
    "program": ProgramActivity,
    "file": FileStat,
}


def taken(kind, *present):
    """True if an activity of this kind cannot be beside those."""
    workspace = SerialWorkspace.__new__(SerialWorkspace)
    workspace._activities = {name: KINDS[name].__new__(KINDS[name]) for name in present}
    return workspace._is_busy(KINDS[kind].__new__(KINDS[kind]))


class SerialWorkspaceTest(unittest.TestCase):
    def test_beside_a_session_its_cells_and_files_can_be_used_and_nothing_else(self):
        self.assertEqual({kind: taken(kind, "session") for kind in KINDS}, {kind: kind in ("session", "script", "program") for kind in KINDS})

    def test_beside_a_cell_nothing_begins(self):
        self.assertEqual({kind: taken(kind, "session", "cell") for kind in KINDS}, dict.fromkeys(KINDS, True))

    def test_beside_a_script_or_a_program_nothing_begins(self):
        for present in ("script", "program"):
            self.assertEqual({kind: taken(kind, present) for kind in KINDS}, dict.fromkeys(KINDS, True))

    def test_beside_an_operation_on_files_only_others_on_files_and_sessions_begin(self):
        self.assertEqual({kind: taken(kind, "session", "file") for kind in KINDS}, {kind: kind not in ("look", "file") for kind in KINDS})


class ProcessWithoutDescriptorTest(unittest.TestCase):
    def test_it_is_signalled_by_its_number_until_it_is_closed_and_its_end_is_seen(self):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        process = SessionProcess()
        process.pid = pid
        self.assertTrue(process.is_alive())
        process.signal(signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self.assertEqual((process.is_alive(), process.has_ended()), (False, True))
        process.close()
        self.assertIsNone(process.pid)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    unittest.main()
