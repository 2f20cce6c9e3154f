"""Sends a signal to broker, zygote or both; the run itself continues."""

import os
import signal
import time

for name in targets:
    try:
        os.kill(1 if name == "broker" else os.getppid(), getattr(signal, which))
    except PermissionError:
        pass  # the filter rejects signals to the broker
time.sleep(0.1)
emit_result("alive")
