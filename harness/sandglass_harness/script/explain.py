"""Describes the errors of a script in texts of limited length, with the line numbers of the script."""

import linecache
import traceback

from ..text import cut
from .door import remove_harness

FILENAME = "<script>"
PREAMBLE, POSTAMBLE = "<preamble>", "<postamble>"  # wrapper code of the caller, before and after the script
_TEXTS = (FILENAME, PREAMBLE, POSTAMBLE)
_CELL = "<cell "
MAX_NAME, MAX_MESSAGE, MAX_TRACEBACK = 500, 8 * 1024, 60 * 1024  # characters; below the limits of caps.py
MAX_BRIEF = 500


def tool_filename(name):
    """Returns the file name of a Python tool in tracebacks."""
    return f"<tool {name}>"


def cell_filename(number):
    """Returns the file name of a cell of a session in tracebacks."""
    return f"{_CELL}{number}>"


def is_script(filename):
    """True for the file name of a script or of a cell."""
    return filename == FILENAME or (isinstance(filename, str) and filename.startswith(_CELL))


def remember_source(source, filename=FILENAME):
    """Lets tracebacks show the lines of source code that is not in a file."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def forget_source(filename=FILENAME):
    """Forgets the source code of the script, or of a cell."""
    linecache.cache.pop(filename, None)


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
        remove_harness(error)
        traced = traceback.TracebackException(kind, error, error.__traceback__, compact=True)
        text = "".join(cut(line, MAX_TRACEBACK) for line in traced.format())
    except Exception as broken:
        text = f"{message}\n(the traceback could not be formatted: {type(broken).__name__})\n"
    return message, cut(text, MAX_TRACEBACK)


def describe_briefly(error):
    """Returns an exception in one line, for the reports of preloads and Python tools that failed to load."""
    return cut(f"{type(error).__name__}: {error}".replace("\n", " "), MAX_BRIEF)


def describe_place(error):
    """Returns the traceback without the message, or None. Calls no code of the script."""
    remove_harness(error)
    stack = traceback.extract_tb(_own_frames(error.__traceback__))
    if not stack:
        return None
    return cut("Traceback (most recent call last):\n" + "".join(traceback.format_list(stack)), MAX_TRACEBACK)


def last_line(error, filename):
    """Returns the line number of the last traceback entry in `filename`, or None."""
    tb, line = error.__traceback__, None
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def _own_frames(tb):
    """Returns the traceback from the first entry of the script or its wrapper code on."""
    first = tb
    while first is not None and not _is_own(first.tb_frame.f_code.co_filename):
        first = first.tb_next
    return first


def _is_own(filename):
    return filename in _TEXTS or filename.startswith(_CELL)
