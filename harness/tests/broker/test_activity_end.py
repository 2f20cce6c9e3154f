"""The end of an activity with processes, seen by the broker."""

import socket
import struct
import types
import unittest

from sandglass_harness.broker.activity import ProcessActivity
from sandglass_harness.broker.keepers import KeptSpare


class Ending(ProcessActivity):
    """An activity that notes how it ended."""

    def on_dead(self, status, confirmed):
        self.ended = status, confirmed


class ActivityEndTest(unittest.TestCase):
    def make(self):
        ended = []
        watcher = types.SimpleNamespace(watch_read=lambda *_: None, forget=lambda *_: None)
        host = types.SimpleNamespace(watcher=watcher, end_sandbox=lambda: ended.append(True))
        spare = KeptSpare.__new__(KeptSpare)
        spare.control, keeper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (spare.control, keeper):
            self.addCleanup(end.close)
        activity = Ending(host, {"execution_id": "e1"})
        activity.begin(spare)
        activity.end("cancelled")
        return activity, keeper, ended

    def test_an_answer_that_came_while_the_broker_was_busy_is_in_time(self):
        activity, keeper, ended = self.make()
        keeper.send(struct.pack("=i?", 9, True))
        activity.check_end(float("inf"))
        self.assertEqual((activity.ended, ended), ((9, True), []))

    def test_without_an_answer_the_sandbox_ends(self):
        activity, _, ended = self.make()
        activity.check_end(float("inf"))
        self.assertEqual((activity.ended, ended), ((9, False), [True]))
