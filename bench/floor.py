"""Measures the cost of forking a warm interpreter on this machine: prints one line of microseconds for each byte read.
For `a` the child was forked ahead, as the one of a run is.

floor.py [DIRECTORY MODULE]: the interpreter has loaded a module from a directory of packages.
"""

import importlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from sandglass_harness.script import zygote  # noqa: E402 - needs the path above

if sys.argv[1:]:
    directory, module = sys.argv[1:]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in a sandbox
    sys.path.append(directory)
    importlib.import_module(module)
zygote._warm_up()


def fork_and_end():
    """Returns the nanoseconds from a fork to the end of the child."""
    read, write = os.pipe()
    start = time.perf_counter_ns()
    pid = os.fork()
    if pid == 0:
        os.write(write, b"x")
        os._exit(0)
    os.read(read, 1)
    os.waitpid(pid, 0)
    taken = time.perf_counter_ns() - start
    os.close(read)
    os.close(write)
    return taken


def wake_and_end():
    """Returns the nanoseconds from the wake-up of a child that was forked ahead, and imports what is loaded, to its end."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(read, 1)
        if sys.argv[1:]:
            importlib.import_module(sys.argv[2])
        os._exit(0)
    time.sleep(0.005)
    start = time.perf_counter_ns()
    os.write(write, b"x")
    os.waitpid(pid, 0)
    taken = time.perf_counter_ns() - start
    os.close(read)
    os.close(write)
    return taken


while asked := sys.stdin.buffer.read(1):
    taken = wake_and_end() if asked == b"a" else fork_and_end()
    sys.stdout.write(f"{taken / 1000:.1f}\n")
    sys.stdout.flush()
