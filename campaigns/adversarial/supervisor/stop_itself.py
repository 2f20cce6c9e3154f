"""Stops itself with SIGSTOP: it reads nothing, writes nothing and does not run."""

import os
import signal

emit_intermediate("stopping")
os.kill(os.getpid(), signal.SIGSTOP)
