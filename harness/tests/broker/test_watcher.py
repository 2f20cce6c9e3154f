import os
import time
import unittest

from sandglass_harness.broker.watcher import Watcher


class WatcherTest(unittest.TestCase):
    def setUp(self):
        self.watcher = Watcher()
        self.called = []

    def pipe(self):
        ends = os.pipe()
        for fd in ends:
            self.addCleanup(os.close, fd)
        return ends

    def test_an_event_of_a_closed_descriptor_does_not_reach_the_next_one_of_the_same_number(self):
        first, _ = ends = self.pipe()
        second, _ = others = self.pipe()
        kept, _ = self.pipe()
        for _, write in (ends, others):
            os.write(write, b"x")

        def replace_second(_event):
            self.called.append("first")
            self.watcher.forget(second)
            os.dup2(kept, second)
            self.watcher.watch_read(second, lambda _event: self.called.append("next"))

        self.watcher.watch_read(first, replace_second)
        self.watcher.watch_read(second, lambda _event: self.called.append("second"))
        self.watcher.wait(0)
        os.read(first, 1)
        self.watcher.wait(0)
        self.assertEqual(self.called, ["first"])

    def test_a_descriptor_that_was_closed_while_it_was_watched_is_forgotten(self):
        fd = os.dup(self.pipe()[0])
        self.watcher.watch_read(fd, lambda _event: self.called.append("closed"))
        os.close(fd)
        self.watcher.wait(0)
        started = time.monotonic()
        self.watcher.wait(20)
        self.assertEqual((self.called, time.monotonic() - started >= 0.02), ([], True))
