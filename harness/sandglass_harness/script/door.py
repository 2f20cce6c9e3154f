"""Wraps functions of the harness that scripts call, and removes the frames of the harness from their errors.

An error that a script prints itself then shows the same frames as the report of `explain`: those of the script, its tools and its
libraries.
"""

import builtins
import functools
import threading

TOOL_FILENAME = "<tool>"  # for the generated functions that call host tools
_HARNESS = __file__.rpartition("/script/")[0] + "/"
_WAITING = ("/asyncio/", "/concurrent/futures/")  # modules in which the harness waits for an async tool
_GROUP = getattr(builtins, "BaseExceptionGroup", None)  # new in Python 3.11
# The descriptors of BaseException, because a class of the script can override the attributes with its own code.
_TRACEBACK, _CONTEXT, _CAUSE = (vars(BaseException)[f"__{name}__"] for name in ("traceback", "context", "cause"))
_MEMBERS = None if _GROUP is None else vars(_GROUP)["exceptions"]
# The handlers of signals that interrupted a wrapper before its first line.
_deferred = []


def called_by_script(function):
    """Wraps a function that scripts call, so that its errors show no frame of the harness."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            if _deferred and threading.get_ident() == threading.main_thread().ident:
                _deferred.pop()()
            return function(*args, **kwargs)
        except BaseException as error:
            try:
                remove_harness(error)
            except Exception:  # for example a RecursionError, if the script has used up the stack
                error.__traceback__ = None
            # A `raise` without an operand adds no entry for this frame to the traceback. (Python 3.10 keeps the entry that is
            # there already.)
            raise

    return call


_WRAPPER = called_by_script(len).__code__


def defer(frame, act):
    """Returns True if a signal has interrupted a wrapper before its `try` begins. The wrapper then calls `act` itself."""
    if frame is None or frame.f_code is not _WRAPPER or frame.f_lineno != _WRAPPER.co_firstlineno:
        return False
    _deferred.append(act)
    return True


def remove_harness(error):
    """Removes the frames of the harness from an exception, its causes and the members of its group, and drops exceptions that
    the harness has handled. Calls no code of the script."""
    seen, left = set(), [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        _TRACEBACK.__set__(one, _without_harness(_TRACEBACK.__get__(one)))
        first = context = _CONTEXT.__get__(one)
        passed = set()
        while context is not None and id(context) not in passed and _is_internal(context):
            passed.add(id(context))
            context = _CONTEXT.__get__(context)
        if context is not first:
            _CONTEXT.__set__(one, context)
        left += (_CAUSE.__get__(one), context)
        if _GROUP is not None and issubclass(type(one), _GROUP):
            left += _MEMBERS.__get__(one)


def _is_internal(error):
    """True if an exception has passed only through frames of the harness."""
    tb = _TRACEBACK.__get__(error)
    return tb is not None and next(_entries_of_others(tb), None) is None


def _without_harness(tb):
    """Removes the entries of the harness in place, and returns the first other entry. `tb` then leads to that entry, too."""
    kept = list(_entries_of_others(tb))
    for entry, following in zip(kept, [*kept[1:], None]):
        if entry.tb_next is not following:
            entry.tb_next = following
    head = kept[0] if kept else None
    if tb is not head:
        tb.tb_next = head
    return head


def _entries_of_others(tb):
    """Yields the entries of a traceback except those of the harness and of modules in which it waits."""
    after_harness = False
    while tb is not None:
        filename, following = tb.tb_frame.f_code.co_filename, tb.tb_next
        if filename.startswith(_HARNESS) or filename == TOOL_FILENAME:
            after_harness = True
        elif not (after_harness and any(part in filename for part in _WAITING)):
            after_harness = False
            yield tb
        tb = following
