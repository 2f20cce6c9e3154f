"""Describes the end of a process for the host, for scripts and programs alike."""

import os
import signal


def ending_of(status, killed_for):
    """Returns the field `ending` of a last frame. `status` is the wait(2) status of the first process; `killed_for` is the cause
    for which the harness ended it, or None."""
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    name = _name_of_signal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None
    if killed_for is not None:
        by = "host" if killed_for == "cancelled" else "harness"
        return {"cause": killed_for, "exit_code": code, "signal": name, "by": by}
    if name is not None:
        # SIGKILL may come from the kernel (OOM) or from the script itself. The host determines which.
        by = "unknown" if name == "SIGKILL" else "script"
        return {"cause": "signal", "exit_code": None, "signal": name, "by": by}
    return {"cause": "exit", "exit_code": code, "signal": None, "by": "script"}


def _name_of_signal(number):
    """Returns a name like `SIGTERM`; real-time signals have only numbers."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
