"""Reads nothing, writes nothing, and does not even run any more."""

import os
import signal

emit_intermediate("stopping")
os.kill(os.getpid(), signal.SIGSTOP)
