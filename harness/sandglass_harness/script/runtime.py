"""Runs one script in this process. Needs neither a fork nor a sandbox; the caller provides an emitter."""

import atexit
import builtins
import json
import os
import sys
import threading
import types

from . import display, emit, explain, tools as python_tools
from .convert import ConversionError, to_json
from .door import remove_harness
from .host_tools import ToolError

# The endings of a script in this process.
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
    announces_script=True,
    finishes=True,
):
    """Executes `source` with fresh globals and reports an error through `emitter`.

    `loaders` from preloading.load run first and add to `base_globals`; if one fails, the script does not start. `tools` are the
    functions that call host tools, `tool_sources` the Python tools of the request. `preamble` and `postamble` are wrapper code of
    the caller. They run before and after the script in the same globals, and are compiled separately, so that the script keeps
    its line numbers. A ScriptTimeout of the caller's clock is reported as 'Script timed out after Xs', with the traceback of the
    interrupted line. With `announces_script`, a frame tells the broker when the script itself begins. Without `finishes`, threads
    and exit handlers are left alone, because a rehearsal must not use up those that preloaded modules registered.

    Returns (one of the endings above, exit code).
    """
    emit.use(emitter)
    display.begin()
    explain.remember_source(source)
    base_globals = {} if base_globals is None else base_globals
    if not all(_load(name, job, base_globals, emitter) for name, job in loaders):
        return RAISED, 1
    names = {"a tool of the host": tools or (), "an input": inputs or ()}
    names["a Python tool"] = [each["name"] for each in tool_sources]
    if base_globals and not _check_names(names, base_globals, emitter):
        return RAISED, 1
    if tool_sources and not load_sources(tool_sources, base_globals, emitter):
        return RAISED, 1
    scope = _fresh_globals(base_globals, {**(tools or {}), **(inputs or {})})
    ending = DONE, 0
    is_setup, origin = True, os.getpid()
    try:
        if preamble:
            _run(preamble, explain.PREAMBLE, scope)
        is_setup = False
        if announces_script:
            # The script can write frames itself. After this one the broker ignores reports of setup failures.
            emitter.send({"type": "setup_over"})
        _run(source, explain.FILENAME, scope)
        if postamble:
            _run(postamble, explain.POSTAMBLE, scope)
    except BaseException as error:
        end_fork(origin, error, runs_exit_handlers=True)
        ending = report_ending(emitter, error, timeout_text, is_setup)
        if ending[0] is TIMED_OUT or emit.clock_ran_out():
            return ending
    end_fork(origin, runs_exit_handlers=True)
    if not finishes:
        return ending
    try:
        display.flush_figures()
        _finish_threads()
        _run_exit_handlers()
    except BaseException as error:
        late = report_ending(emitter, error, timeout_text)
        return late if ending[0] is DONE or late[0] is TIMED_OUT else ending
    return ending


def _run(text, filename, scope):
    if filename is not explain.FILENAME:
        explain.remember_source(text, filename)
    exec(compile(text, filename, "exec", dont_inherit=True), scope)  # noqa: S102 - this is the purpose


def _load(name, job, scope, emitter, filename=None):
    """Runs a loader. Reports a failure and returns False."""
    try:
        job(scope)
    except emit.ScriptTimeout:
        raise
    except BaseException as error:
        message, place = explain.describe(error)
        kind = "memory" if isinstance(error, MemoryError) else "setup"
        _report(emitter, f"{name} could not be loaded: {message}{_line_of(error, filename)}", place, kind)
        return False
    return True


def _line_of(error, filename):
    """Returns the file name and line number in the format of a SyntaxError, or an empty text."""
    line = explain.last_line(error, filename)
    return "" if line is None else f" ({filename}, line {line})"


def load_sources(sources, scope, emitter):
    """Loads Python tools. Reports a failure and returns False."""
    names = [explain.tool_filename(source["name"]) for source in sources]
    pairs = zip(python_tools.make_loaders(sources), names)
    return all(_load(name, job, scope, emitter, filename) for (name, job), filename in pairs)


def _check_names(names_by_kind, base_globals, emitter):
    """Returns True if no name of the run is also a function of the tools directory. Otherwise reports the name."""
    for kind, names in names_by_kind.items():
        taken = next((name for name in names if python_tools.is_from_tools_directory(base_globals.get(name))), None)
        if taken is not None:
            message = f"{taken} is both {kind} of this run and a function of the tools directory; rename one of them"
            _report(emitter, message, None, "setup")
            return False
    return True


def report_ending(emitter, error, timeout_text, is_setup=False, note=""):
    """Reports the exception that ended the script, or the code before it; `note` follows the message of a timeout. Returns (the
    ending, exit code)."""
    if isinstance(error, emit.ScriptTimeout):
        place = explain.describe_place(error)
        _report(emitter, f"Script timed out after {timeout_text}s{note}", place, "timeout")
        return TIMED_OUT, 1
    if is_setup and not isinstance(error, MemoryError):
        message, place = explain.describe(error)
        _report(emitter, f"the preamble failed: {message}", place, "setup")
        return RAISED, 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        message, place = explain.describe(error)
        _report(emitter, f"{message} (the script called sys.exit)", place, "exit")
        return EXITED, code & 0xFF
    kind = "exception"
    is_of_script = isinstance(error, SyntaxError) and explain.is_script(error.filename)
    if is_of_script and explain.last_line(error, error.filename) is None:
        kind = "syntax"
    elif isinstance(error, KeyboardInterrupt) and emit.was_interrupted():
        kind = "interrupted"
    elif isinstance(error, MemoryError):
        kind = "memory"
    _report(emitter, *explain.describe(error), kind)
    return RAISED, 1


def end_fork(origin, error=None, runs_exit_handlers=False):
    """Ends this process, as Python ends a program, if the script has forked it: only the process `origin` reports, and returns to
    the harness. `error` is the exception that ended the script here, if any."""
    if os.getpid() == origin:
        return
    code = 1
    try:
        code = _print_end(error)
        _finish_threads()
        if runs_exit_handlers:
            _run_exit_handlers()
        flush_streams()
    except BaseException:  # from code of the script
        pass
    os._exit(code)


def _print_end(error):
    """Prints the exception that ended a program. Returns the exit code."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
    elif sys.excepthook is sys.__excepthook__:
        sys.stderr.write(explain.describe(error)[1])
    else:
        remove_harness(error)
        sys.excepthook(type(error), error, error.__traceback__)
    return 1


def flush_streams():
    """Writes what the streams have buffered."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # a stream of the script's own
            pass


def report_timeout(emitter, timeout_text):
    """Reports a timeout outside the script: before it, or while its error was being described."""
    _report(emitter, f"Script timed out after {timeout_text}s", None, "timeout")


def rehearse():
    """Touches the memory that every run writes to, because page faults after a fork dominate the time of a short run."""
    scope = _fresh_globals({}, {})
    exec(compile("values = [n for n in range(3)]", explain.FILENAME, "exec", dont_inherit=True), scope)
    json.dumps(to_json({"values": scope["values"]}), separators=(",", ":")).encode()
    json.loads('{"values": [0, 1, 2]}')


def base_names(base_globals):
    """Returns the globals that every script has."""
    own = {"display": display.display, "ToolError": ToolError, "ConversionError": ConversionError}
    return {**base_globals, **emit.HELPERS, **own}


def _fresh_globals(base_globals, own):
    main = types.ModuleType("__main__")
    # Pickle, dataclasses and typing look a script's classes up here.
    sys.modules["__main__"] = main
    scope = main.__dict__
    scope.update(base_names(base_globals))
    scope.update(own)
    scope["__builtins__"] = builtins
    scope["__name__"] = "__main__"
    return scope


def _finish_threads():
    """Waits for non-daemon threads, as the interpreter does at the end of every program."""
    # Not by threading._shutdown, which swallows a ScriptTimeout from Python 3.13 on.
    for end_a_pool in reversed(threading._threading_atexits):
        end_a_pool()
    while threading.active_count() > 1:
        others = [t for t in threading.enumerate() if not t.daemon and t is not threading.current_thread()]
        if not others:
            break
        for thread in others:
            thread.join()


def _run_exit_handlers():
    """Runs atexit handlers, as the interpreter does next."""
    if atexit._ncallbacks():
        before = emit.clock_ran_out()
        atexit._run_exitfuncs()
        if emit.clock_ran_out() and not before:
            raise emit.ScriptTimeout  # atexit catches what a handler raises


def _report(emitter, message, traceback, kind):
    try:
        emitter.send({"type": "error", "message": message, "traceback": traceback, "kind": kind})
    except OSError:
        pass  # the script has closed the descriptor; the broker reports how the process ended
    except emit.ScriptTimeout as timeout:
        if not timeout.after_line:
            raise  # the error was not sent; the caller reports the timeout
