"""Output that is read only as fast as the host takes it, and from each source in turn."""

import os
import unittest

from sandglass_harness.broker.sources import Source, Sources
from sandglass_harness.broker.watcher import Watcher
from sandglass_harness.caps import MAX_WAITING_BYTES


class FakeChannel:
    """A channel whose host takes everything, or nothing."""

    def __init__(self):
        self.outbox = self
        self.size = 0
        self.takes = True
        self.sent = []

    def send_payload(self, run_id_json, stream, data):
        self.sent.append((run_id_json, stream, data))
        self.size += 0 if self.takes else len(data)

    def total(self, run_id_json):
        return sum(len(data) for run, _, data in self.sent if run == run_id_json)


class SourcesTest(unittest.TestCase):
    def setUp(self):
        self.channel, self.watcher, self.ended = FakeChannel(), Watcher(), []
        self.sources = Sources(self.watcher, self.channel)

    def open(self, name, credit, data=b"", closes=False):
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.write(write, data)
        if closes:
            os.close(write)
        else:
            self.addCleanup(os.close, write)
        self.addCleanup(os.close, read)
        source = Source(read, name, b"stdout", credit, self.ended.append)
        self.sources.add(source)
        return source, write

    def turn(self, times=1):
        for _ in range(times):
            self.sources.arm()
            self.watcher.wait(0)

    def test_a_source_sends_no_more_than_the_host_takes(self):
        source, _ = self.open(b'"a"', 10, b"x" * 100)
        self.turn(5)
        self.assertEqual(self.channel.total(b'"a"'), 10)
        source.credit += 25
        self.turn(5)
        self.assertEqual(self.channel.total(b'"a"'), 35)

    def test_a_source_without_credit_keeps_no_other_waiting(self):
        self.open(b'"a"', 0, b"x" * 100)
        self.open(b'"b"', 1000, b"y" * 100)
        self.turn(2)
        self.assertEqual(self.channel.total(b'"b"'), 100)

    def test_nothing_is_read_while_too_much_waits_for_the_host(self):
        self.channel.size = MAX_WAITING_BYTES
        self.open(b'"a"', 1000, b"x" * 100)
        self.turn(3)
        self.assertEqual(self.channel.sent, [])
        self.channel.size = 0
        self.turn()
        self.assertEqual(self.channel.total(b'"a"'), 100)

    def test_sources_take_turns(self):
        for name in (b'"a"', b'"b"', b'"c"'):
            source, _ = self.open(name, 1 << 20, b"x" * 60000)
            source.credit = 1 << 20
        order = []
        for _ in range(3):  # the host takes one piece at a time
            self.channel.takes = False
            self.channel.size = 0
            self.turn()
            order += [run for run, _, _ in self.channel.sent]
            self.channel.sent.clear()
        self.assertEqual(sorted(set(order)), [b'"a"', b'"b"', b'"c"'])

    def test_the_end_is_reported_once(self):
        source, _ = self.open(b'"a"', 1000, b"x", closes=True)
        self.turn(4)
        self.assertEqual(self.ended, [source])

    def test_when_nobody_writes_any_more_an_open_pipe_ends(self):
        source, _ = self.open(b'"a"', 1 << 30, b"x" * 50000)  # somebody else holds its other end
        source.is_last = True
        self.turn(1)
        self.assertEqual((self.channel.total(b'"a"'), self.ended), (50000, [source]))


if __name__ == "__main__":
    unittest.main()
