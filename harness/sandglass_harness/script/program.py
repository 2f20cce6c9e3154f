"""Turns this process into a program: sets its descriptors, limits and environment, and executes it."""

import fcntl
import json
import os
import resource
import signal
import sys
import termios
import warnings  # noqa: F401 - os.execvpe imports it, and would look for it in the workspace first

from . import child
from .script_process import FRAME_FD

# The directory of the host's files, where the engine shows one. Nothing in the sandbox can write to it.
INPUTS = "/inputs"
# Limits per process, which the children of a program inherit.
LIMITS = {
    "memory_bytes": resource.RLIMIT_AS,
    "cpu_sec": resource.RLIMIT_CPU,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}


def become(receive, fds):
    """Executes the program of the request that `receive` returns. Returns only after it has reported why that failed."""
    # A file of another activity must not be imported here in place of a module: this process has the secrets of the program.
    workspace = os.getcwd()
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != workspace]
    request = receive()
    try:
        _take_descriptors(request["tty"], fds)
        if not _enter(request["cwd"]):
            return
        for name, amount in request["limits"].items():
            _limit(name, amount)
        _restore_signals()
        os.execvpe(request["argv"][0], request["argv"], _environment(request))
    except (FileNotFoundError, NotADirectoryError):
        _report("no_such_program", f"there is no program {json.dumps(request['argv'][0])}")
    except OSError as error:
        shown = json.dumps(request["argv"][0])
        _report("not_executable", f"{shown} cannot be executed: {error.strerror}")
    except ValueError as error:
        _report("invalid", str(error))


def _take_descriptors(has_terminal, fds):
    for fd in fds:
        for target in (0, 1, 2) if has_terminal else (0,):
            os.dup2(fd, target, inheritable=True)
        os.close(fd)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _enter(path):
    """Changes into a directory of the workspace or of the inputs, also through links that end there. Returns False after it has
    reported a failure."""
    root, shown = os.getcwd(), json.dumps(path)
    try:
        os.chdir(os.path.join(root, path))
    except NotADirectoryError:
        _report("not_a_directory", f"{shown} is not a directory")
    except OSError as error:
        code = "not_found" if isinstance(error, FileNotFoundError) else "io"
        _report(code, f"the directory {shown} cannot be entered: {error.strerror}")
    else:
        if (os.getcwd() + "/").startswith((root + "/", INPUTS + "/")):
            return True
        _report("outside", f"the directory {shown} is outside of the workspace")
    return False


def _environment(request):
    own = {"WORKSPACE_DIR": request["workspace"], "PWD": os.getcwd()}
    if request["import_paths"]:
        own["PYTHONPATH"] = os.pathsep.join(request["import_paths"])
    if request["tty"]:
        own["TERM"] = "xterm-256color"
    return {**os.environ, **own, **request["env"]}


def _limit(name, amount):
    if name == "pids":
        # The kernel counts all processes of the uid, so the limit includes those that exist already.
        amount += sum(entry.isdigit() for entry in os.listdir("/proc"))
        child.lower(resource.RLIMIT_NPROC, amount, amount)
    else:
        child.lower(LIMITS[name], amount, amount)


def _restore_signals():
    """Restores two signals that the interpreter ignores, because programs would inherit that."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _report(code, message):
    error = {"code": code, "message": message}
    try:
        os.write(FRAME_FD, json.dumps(error).encode() + b"\n")
    except OSError:
        pass
