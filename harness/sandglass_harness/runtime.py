"""Runs one script in this process. Depends neither on forking nor on a sandbox: the caller brings an emitter."""

import atexit
import builtins
import json
import sys
import threading
import types

from . import emit, explain
from .convert import to_json

# How a run in this process came to its end.
DONE, RAISED, EXITED, TIMED_OUT = "done", "raised", "exited", "timed-out"


def run_script(source, emitter, *, base_globals=None, inputs=None, timeout_text=""):
    """Executes `source` with fresh globals and reports an error through `emitter`.

    Returns (how it ended, exit code). A ScriptTimeout that the caller's clock raises is reported as
    'Script timed out after Xs' with the traceback of where it was.
    """
    emit.use(emitter)
    explain.remember_source(source)
    scope = _fresh_globals(base_globals or {}, inputs or {})
    try:
        exec(compile(source, explain.FILENAME, "exec", dont_inherit=True), scope)  # noqa: S102
        _finish_threads_and_exit_handlers()
        return DONE, 0
    except emit.ScriptTimeout as error:
        place = explain.describe_place(error)
        _tell(emitter, f"Script timed out after {timeout_text}s", place, "timeout")
        return TIMED_OUT, 1
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        message, place = explain.describe(error)
        _tell(emitter, f"{message} (the script called sys.exit)", place, "exit")
        return EXITED, code & 0xFF
    except BaseException as error:
        kind = "exception"
        if isinstance(error, SyntaxError) and error.filename == explain.FILENAME and error.__traceback__.tb_next is None:
            kind = "syntax"
        elif isinstance(error, MemoryError):
            kind = "memory"
        _tell(emitter, *explain.describe(error), kind)
        return RAISED, 1


def tell_timeout(emitter, timeout_text):
    """For a clock that ran out beside the script: in what is done before it, or while its error was described."""
    _tell(emitter, f"Script timed out after {timeout_text}s", None, "timeout")


def rehearse():
    """Touches what every run writes to (page faults after a fork are most of what a short run costs)."""
    scope = _fresh_globals({}, {})
    exec(compile("values = [n for n in range(3)]", explain.FILENAME, "exec", dont_inherit=True), scope)
    json.dumps(to_json({"values": scope["values"]}), separators=(",", ":")).encode()
    json.loads('{"values": [0, 1, 2]}')


def _fresh_globals(base_globals, inputs):
    main = types.ModuleType("__main__")
    # Pickle, dataclasses and typing look a script's classes up here.
    sys.modules["__main__"] = main
    scope = main.__dict__
    scope.update(base_globals)
    scope.update(emit.HELPERS)
    scope.update(inputs)
    scope["__builtins__"] = builtins
    scope["__name__"] = "__main__"
    return scope


def _finish_threads_and_exit_handlers():
    """What the interpreter does at the end of a program: wait for threads that are no daemons, run atexit handlers."""
    # Not by threading._shutdown, which swallows a ScriptTimeout from Python 3.13 on.
    for end_a_pool in reversed(threading._threading_atexits):
        end_a_pool()
    while threading.active_count() > 1:
        others = [t for t in threading.enumerate() if not t.daemon and t is not threading.current_thread()]
        if not others:
            break
        for thread in others:
            thread.join()
    if atexit._ncallbacks():
        atexit._run_exitfuncs()


def _tell(emitter, message, traceback, kind):
    try:
        emitter.send({"type": "error", "message": message, "traceback": traceback, "kind": kind})
    except OSError:
        pass  # the script closed the way out: the broker tells how the process ended
    except emit.ScriptTimeout as timeout:
        if not timeout.after_line:
            raise  # nothing was told: the caller tells that the clock ran out
