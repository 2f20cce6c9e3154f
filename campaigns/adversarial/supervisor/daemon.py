"""Leaves a daemon that holds every pipe, ignores every signal and has a session of its own."""

import os
import signal
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()  # until then it is in the process group of the script and is killed with it
emit_result("left")
