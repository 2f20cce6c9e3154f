"""Describes errors of a script in texts of limited length, with the line numbers of the script."""

import linecache
import traceback

from ..text import cut

FILENAME = "<script>"
PREAMBLE, POSTAMBLE = "<preamble>", "<postamble>"  # wrapper code of the caller, before and after the script
_TEXTS = (FILENAME, PREAMBLE, POSTAMBLE)
TOOL_FILENAME = "<tool>"  # for the generated functions that call host tools
MAX_NAME, MAX_MESSAGE, MAX_TRACEBACK = 500, 8 * 1024, 60 * 1024  # characters; below the limits of caps.py
MAX_BRIEF = 500
_HARNESS = __file__.rpartition("/script/")[0] + "/"
_WAITING = ("/asyncio/", "/concurrent/futures/")  # modules in which the harness waits for an async tool


def tool_filename(name):
    """Returns the file name of a Python tool in tracebacks."""
    return f"<tool {name}>"


def remember_source(source, filename=FILENAME):
    """Lets tracebacks show the lines of source code that is not in a file."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def describe(error):
    """Returns (message, traceback) of an exception from the script, or from code that was loaded for it."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception as broken:
        text = f"<its __str__ raised {type(broken).__name__}>"
    name = cut(name, MAX_NAME)
    message = f"{name}: {cut(text, MAX_MESSAGE)}" if text else name
    try:
        tb = error.__traceback__
        traced = traceback.TracebackException(kind, error, _own_frames(tb) or _loaded_frames(tb), compact=True)
        _remove_harness_frames(traced)
        text = "".join(cut(line, MAX_TRACEBACK) for line in traced.format())
    except Exception as broken:
        text = f"{message}\n(the traceback could not be made: {type(broken).__name__})\n"
    return message, cut(text, MAX_TRACEBACK)


def brief(error):
    """Returns an exception in one line, for the reports of preloads and Python tools that failed to load."""
    return cut(f"{type(error).__name__}: {error}".replace("\n", " "), MAX_BRIEF)


def _remove_harness_frames(traced):
    """Removes frames of the harness from an exception, its causes and its group, and drops exceptions that the harness
    handled itself. So the traceback of a failed tool or helper ends at the call in the script."""
    traced.stack[:] = _without_harness(traced.stack)
    chain = [traced]
    while chain:
        one = chain.pop()
        while one.__context__ is not None and _is_internal(one.__context__):
            one.__context__ = one.__context__.__context__
        others = [other for other in (one.__cause__, one.__context__) if other is not None]
        others += getattr(one, "exceptions", None) or ()
        for other in others:
            other.stack[:] = _without_harness(other.stack)
        chain += others


def _is_internal(traced):
    """True if an exception passed through frames of the harness alone."""
    return bool(traced.stack) and not _without_harness(traced.stack)


def _without_harness(stack):
    kept, after_harness = [], False
    for frame in stack:
        if frame.filename.startswith(_HARNESS) or frame.filename == TOOL_FILENAME:
            after_harness = True
        elif not (after_harness and any(part in frame.filename for part in _WAITING)):
            after_harness = False
            kept.append(frame)
    return kept


def describe_place(error):
    """Returns the traceback without the message, or None. Calls no code of the script."""
    # The last frames are those of the signal handler, which is part of the harness.
    stack = _without_harness(traceback.extract_tb(_own_frames(error.__traceback__)))
    if not stack:
        return None
    return cut("Traceback (most recent call last):\n" + "".join(traceback.format_list(stack)), MAX_TRACEBACK)


def last_line(error, filename):
    """Returns the line number of the last traceback entry that is in a file, or None."""
    tb, line = error.__traceback__, None
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def skip_harness(tb):
    """Returns the traceback without its first frames, those of the harness and of the modules in which it waits."""
    while tb is not None and _is_harness_or_wait(tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    return tb


def _is_harness_or_wait(filename):
    return filename.startswith(_HARNESS) or any(part in filename for part in _WAITING)


def _loaded_frames(tb):
    """Returns the frames after those of the harness: those of a tool file, where no frame is the script's."""
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_HARNESS):
        tb = tb.tb_next
    return tb


def _own_frames(tb):
    """Returns the frames from the first one of the script or its wrapper code."""
    first = tb
    while first is not None and first.tb_frame.f_code.co_filename not in _TEXTS:
        first = first.tb_next
    return first
