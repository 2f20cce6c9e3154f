"""Runs one script in this process. Depends neither on forking nor on a sandbox: the caller brings an emitter."""

import atexit
import builtins
import json
import sys
import threading
import types

from . import emit, explain, tools as python_tools
from .convert import to_json
from .host_tools import ToolError

# How a run in this process came to its end.
DONE, RAISED, EXITED, TIMED_OUT = "done", "raised", "exited", "timed-out"


def run_script(
    source,
    emitter,
    *,
    base_globals=None,
    loaders=(),
    tools=None,
    tool_sources=(),
    inputs=None,
    preamble="",
    postamble="",
    timeout_text="",
):
    """Executes `source` with fresh globals and reports an error through `emitter`.

    `loaders` are what preloading.load left to be loaded into `base_globals` in the run itself; when one fails, the
    script does not start. `tools` are the functions that stand for host tools, `tool_sources` tools that are Python
    themselves, as the wire has them. `preamble` and `postamble` are Python that the caller has run before and behind the
    script in the same globals: texts of their own, so that the script keeps its line numbers. Returns (how it ended, exit
    code). A ScriptTimeout that the caller's clock raises is reported as 'Script timed out after Xs' with the traceback of
    where it was.
    """
    emit.use(emitter)
    explain.remember_source(source)
    base_globals = {} if base_globals is None else base_globals
    if not all(_load(name, job, base_globals, emitter) for name, job in loaders):
        return RAISED, 1
    kinds = {"a tool of the host": tools or (), "an input": inputs or ()}
    kinds["a Python tool"] = [each["name"] for each in tool_sources]
    if base_globals and not _are_free(kinds, base_globals, emitter):
        return RAISED, 1
    if tool_sources and not _load_sources(tool_sources, base_globals, emitter):
        return RAISED, 1
    scope = _fresh_globals(base_globals, {**(tools or {}), **(inputs or {})})
    ending = DONE, 0
    try:
        if preamble:
            _run(preamble, explain.PREAMBLE, scope)
        _run(source, explain.FILENAME, scope)
        if postamble:
            _run(postamble, explain.POSTAMBLE, scope)
    except BaseException as error:
        ending = _tell_ending(emitter, error, timeout_text)
        if ending[0] is TIMED_OUT or emit.clock_ran_out():
            return ending
    try:
        _finish_threads_and_exit_handlers()
    except BaseException as error:
        late = _tell_ending(emitter, error, timeout_text)
        return late if ending[0] is DONE or late[0] is TIMED_OUT else ending
    return ending


def _run(text, filename, scope):
    if filename is not explain.FILENAME:
        explain.remember_source(text, filename)
    exec(compile(text, filename, "exec", dont_inherit=True), scope)  # noqa: S102 - to run it is what this is for


def _load(name, job, scope, emitter, filename=None):
    """False, and told, when it failed."""
    try:
        job(scope)
    except emit.ScriptTimeout:
        raise
    except BaseException as error:
        message, place = explain.describe(error)
        kind = "memory" if isinstance(error, MemoryError) else "exception"
        _tell(emitter, f"{name} could not be loaded: {message}{_line_of(error, filename)}", place, kind)
        return False
    return True


def _line_of(error, filename):
    """As the text of a SyntaxError has it."""
    line = explain.last_line(error, filename)
    return "" if line is None else f" ({filename}, line {line})"


def _load_sources(sources, scope, emitter):
    """False, and told, when one failed."""
    names = [explain.tool_filename(source["name"]) for source in sources]
    pairs = zip(python_tools.loaders(sources), names)
    return all(_load(name, job, scope, emitter, filename) for (name, job), filename in pairs)


def _are_free(kinds, base_globals, emitter):
    """False, and told, when a name that the run brings is that of a function of the tools directory."""
    for kind, names in kinds.items():
        taken = next((name for name in names if python_tools.is_of_directory(base_globals.get(name))), None)
        if taken is not None:
            message = f"{taken} is {kind} of this run, and a function of the tools directory: give one another name"
            _tell(emitter, message, None, "exception")
            return False
    return True


def _tell_ending(emitter, error, timeout_text):
    """Reports what left the script. Returns (how it ended, exit code)."""
    if isinstance(error, emit.ScriptTimeout):
        place = explain.describe_place(error)
        _tell(emitter, f"Script timed out after {timeout_text}s", place, "timeout")
        return TIMED_OUT, 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        message, place = explain.describe(error)
        _tell(emitter, f"{message} (the script called sys.exit)", place, "exit")
        return EXITED, code & 0xFF
    kind = "exception"
    is_of_script = isinstance(error, SyntaxError) and error.filename == explain.FILENAME
    if is_of_script and explain.last_line(error, explain.FILENAME) is None:
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


def _fresh_globals(base_globals, own):
    main = types.ModuleType("__main__")
    # Pickle, dataclasses and typing look a script's classes up here.
    sys.modules["__main__"] = main
    scope = main.__dict__
    scope.update(base_globals)
    scope.update(emit.HELPERS)
    scope["ToolError"] = ToolError
    scope.update(own)
    scope["__builtins__"] = builtins
    scope["__name__"] = "__main__"
    return scope


def _finish_threads_and_exit_handlers():
    """What the interpreter does at the end of a program, also of one that failed: wait for threads that are no daemons,
    run atexit handlers."""
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
        before = emit.clock_ran_out()
        atexit._run_exitfuncs()
        if emit.clock_ran_out() and not before:
            raise emit.ScriptTimeout  # it swallows what a handler raises


def _tell(emitter, message, traceback, kind):
    try:
        emitter.send({"type": "error", "message": message, "traceback": traceback, "kind": kind})
    except OSError:
        pass  # the script closed the way out: the broker tells how the process ended
    except emit.ScriptTimeout as timeout:
        if not timeout.after_line:
            raise  # nothing was told: the caller tells that the clock ran out
