"""What went wrong in a script, in words: bounded, with the script's own line numbers."""

import linecache
import traceback

FILENAME = "<script>"
PREAMBLE, POSTAMBLE = "<preamble>", "<postamble>"  # of the caller, around the script
_TEXTS = (FILENAME, PREAMBLE, POSTAMBLE)
TOOL_FILENAME = "<tool>"  # of the functions that stand for host tools
MAX_MESSAGE = 8 * 1024
MAX_TRACEBACK = 60 * 1024
MAX_BRIEF = 500
MIN_SECRET = 4  # shorter ones are not redacted anywhere
_HERE = __file__.rpartition("/")[0] + "/"
_BRIDGE = (TOOL_FILENAME, _HERE + "tool_functions.py", _HERE + "host_tools.py")


def tool_filename(name):
    """The name in tracebacks of the source of a Python tool."""
    return f"<tool {name}>"


def remember_source(source, filename=FILENAME):
    """Lets tracebacks show the lines of a script, or of a tool's source, although it is no file."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def describe(error):
    """(message, traceback) of an exception that left the script, or what was loaded for it."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception as broken:
        text = f"<its __str__ raised {type(broken).__name__}>"
    message = f"{name}: {cut(text, MAX_MESSAGE)}" if text else name
    try:
        tb = error.__traceback__
        told = traceback.TracebackException(kind, error, _own_frames(tb) or _loaded_frames(tb), compact=True)
        _leave_out_bridge(told)
        text = "".join(cut(line, MAX_TRACEBACK) for line in told.format())
    except Exception as broken:
        text = f"{message}\n(the traceback could not be made: {type(broken).__name__})\n"
    return message, cut(text, MAX_TRACEBACK)


def brief(error):
    """An exception in one line: of what could not be loaded ahead."""
    return cut(f"{type(error).__name__}: {error}".replace("\n", " "), MAX_BRIEF)


def _leave_out_bridge(told):
    """Of a tool's failure the script's own call is the place; how its function works inside is no news."""
    chain = [told]
    while chain:
        one = chain.pop()
        if any(frame.filename == TOOL_FILENAME for frame in one.stack):
            one.stack[:] = [f for f in one.stack if f.filename not in _BRIDGE]
        chain += [other for other in (one.__cause__, one.__context__) if other is not None]


def describe_place(error):
    """The traceback alone, made without calling anything of the script's."""
    stack = traceback.extract_tb(_own_frames(error.__traceback__))
    while stack and (stack[-1].filename.startswith(_HERE) or stack[-1].filename == TOOL_FILENAME):  # the signal handler
        stack.pop()
    if not stack:
        return None
    return cut("Traceback (most recent call last):\n" + "".join(traceback.format_list(stack)), MAX_TRACEBACK)


_secrets = {}


def hide(secrets):
    """Names and values that must not be cut in two: a half would not be found by whoever redacts."""
    _secrets.update((name, value) for name, value in secrets.items() if len(value) >= MIN_SECRET)


def cut(text, most):
    """The head and the tail of a text that is too long."""
    if len(text) <= most:
        return text
    text = without_secrets(text)
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def cut_head(text, most):
    """The head of a text that is too long."""
    return text if len(text) <= most else without_secrets(text)[:most]


def without_secrets(text):
    """The text with a marker in place of each secret of this run, the longest first."""
    for name in sorted(_secrets, key=lambda name: -len(_secrets[name])):
        text = text.replace(_secrets[name], f"[redacted:{name}]")
    return text


def last_line(error, filename):
    """The last line of a file that an exception came through, or None."""
    tb, line = error.__traceback__, None
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def _loaded_frames(tb):
    """What follows the frames of the runtime: those of a tool file, where there is no frame of the script."""
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_HERE):
        tb = tb.tb_next
    return tb


def _own_frames(tb):
    """Leaves out the frames of the runtime above the first of the script, or of what is run around it."""
    first = tb
    while first is not None and first.tb_frame.f_code.co_filename not in _TEXTS:
        first = first.tb_next
    return first
