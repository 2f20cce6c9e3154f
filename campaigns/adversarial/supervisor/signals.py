"""Sends a signal to broker, zygote or both; the run itself goes on."""

import os
import signal
import time

for name in targets:
    try:
        os.kill(1 if name == "broker" else os.getppid(), getattr(signal, which))
    except PermissionError:
        pass  # the filter: to the broker nothing is sent
time.sleep(0.1)
emit_result("alive")
