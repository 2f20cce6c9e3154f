"""Measures cells of a Jupyter kernel by its client, without a sandbox. For each line of standard input, it runs one cell and prints the milliseconds."""

import sys
import time

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3")
try:
    for _ in sys.stdin:
        began = time.perf_counter()
        client.execute_interactive("1", output_hook=lambda message: None)
        print((time.perf_counter() - began) * 1000, flush=True)
finally:
    manager.shutdown_kernel(now=True)
