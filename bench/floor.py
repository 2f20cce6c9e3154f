"""Measures the cost of forking a warm interpreter on this machine: prints one line of microseconds for each byte read.

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
while sys.stdin.buffer.read(1):
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
    sys.stdout.write(f"{taken / 1000:.1f}\n")
    sys.stdout.flush()
