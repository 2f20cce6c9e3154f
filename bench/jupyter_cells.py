"""Measures cells of a Jupyter kernel by its client, without a sandbox: `python jupyter_cells.py ROUNDS`. Prints the p50 in ms."""

import sys
import time

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3")
taken = []
for _ in range(int(sys.argv[1])):
    began = time.perf_counter()
    client.execute_interactive("1", output_hook=lambda message: None)
    taken.append((time.perf_counter() - began) * 1000)
    time.sleep(0.005)
manager.shutdown_kernel(now=True)
print(sorted(taken)[len(taken) // 2])
