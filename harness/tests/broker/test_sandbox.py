import mmap
import os
import tempfile
import types
import unittest

from sandglass_harness.broker import integrity
from sandglass_harness.broker.cpu_time import CpuTime
from sandglass_harness.broker.sandbox import Sandbox
from sandglass_harness.broker.scratch import Roots
from sandglass_harness.libc import trim_heap
from tests.forked import call


class OwnSandbox(Sandbox):
    """This process in place of broker and zygote. It shares network, terminals and sockets with other programs of the machine."""

    def __init__(self, directory):
        pids = [os.getpid()]
        self.zygote = types.SimpleNamespace(alive=True)
        self.roots = Roots([directory])
        self.terminals = types.SimpleNamespace(restore=lambda seconds: True)
        self.network = types.SimpleNamespace(are_as_before=lambda: True)
        self._uncollected = types.SimpleNamespace(is_gone=lambda seconds, closed: True)
        self.cpu_time = CpuTime(os.getpid())
        self._limits = integrity.ProcessLimits(pids)
        self._normal = self._limits.read()
        trim_heap()  # what earlier tests have freed would count against the growth
        self._growth = integrity.MemoryGrowth(os.getpid())
        self._has_grown = False


def clean_after(mebibytes, is_kept):
    """Whether a sandbox is clean before and after its broker takes memory, which it keeps or gives back."""
    with tempfile.TemporaryDirectory() as directory:
        sandbox = OwnSandbox(directory)
        found = [sandbox.clean()]
        held = mmap.mmap(-1, mebibytes << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        held.write(bytes(len(held)))
        if not is_kept:
            held.close()
        sandbox.note_growth()
        return [*found, sandbox.clean()]


class GrowthTest(unittest.TestCase):
    def test_a_sandbox_whose_broker_has_grown_ends_with_its_next_run(self):
        self.assertEqual(call(clean_after, 20, is_kept=True), [True, False])

    def test_memory_that_is_given_back_costs_no_sandbox(self):
        self.assertEqual(call(clean_after, 20, is_kept=False), [True, True])


if __name__ == "__main__":
    unittest.main()
