"""Runs the cells of a session: Python code in the same globals, where the last expression of a cell is its value."""

import __future__

import _ast  # because importing `ast` takes longer than a short cell
import builtins
import collections
import contextvars
import re
import sys
import types

from ..script import explain
from . import hints

NOTHING = object()  # the value of a cell without one
MAX_SOURCES = 16 << 20  # characters of cells whose lines tracebacks can show
MAX_CELLS = 10_000  # the maximum number of such cells

_FUTURE = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
_COROUTINE = 0x80  # inspect.CO_COROUTINE
_PROCESS_IDS = ("getpid", "getpgrp", "getpgid", "getsid", "get_native_id")  # a copy of the process has other ones
_NEED_LOOP = ("create_task", "ensure_future", "get_running_loop")
_SEMICOLON = re.compile(r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*;")
_NEWLINE = re.compile(r"\r\n|\r|\n")  # the line ends of the compiler; str.splitlines has more


class Namespace:
    """The globals of a session, which are those of its module `__main__`, and other state that lasts from cell to cell."""

    def __init__(self, base):
        main = types.ModuleType("__main__")
        # Pickle, dataclasses and typing look the classes of cells up here.
        sys.modules["__main__"] = main
        self.scope = main.__dict__
        self.scope.update(base)
        self.scope["__builtins__"] = builtins
        self._at_start = dict(self.scope)
        self._lent = {}
        self._last = NOTHING
        self._loop = None
        self._sources = collections.deque()
        self._source_size = 0
        self.flags = 0  # of `from __future__ import`
        self.names_process_id = False  # True if the code of a cell names a function for it: its result may be stored

    def lend(self, values):
        """Makes `values`, such as the tools of one cell, globals until the next call. Keeps names that a cell has rebound."""
        for name, value in self._lent.items():
            if self.scope.get(name) is value:
                del self.scope[name]
        self._lent = dict(values)
        self.scope.update(values)

    def own_names(self):
        """Returns the names that cells have bound, in order. A predefined name is included once a cell has rebound it."""
        given = {**self._at_start, **self._lent}
        return [name for name, value in list(self.scope.items()) if name not in given or given[name] is not value]

    def remember_source(self, source, filename):
        """Lets tracebacks and `inspect` show the lines of a cell. Forgets those of the oldest cells beyond the limits."""
        import linecache

        explain.remember_source(source, filename)
        self.names_process_id = self.names_process_id or any(name in source for name in _PROCESS_IDS)
        self._sources.append((filename, len(source)))
        self._source_size += len(source)
        while len(self._sources) > 1 and (self._source_size > MAX_SOURCES or len(self._sources) > MAX_CELLS):
            oldest, size = self._sources.popleft()
            self._source_size -= size
            linecache.cache.pop(oldest, None)

    def remember_value(self, value):
        """Binds a value to `_`, as Python's prompt does. A `_` that cells or gettext have bound takes precedence."""
        if vars(builtins).get("_", NOTHING) is self._last:
            builtins._ = self._last = value

    def loop(self):
        """Returns the event loop of the session, which runs while a cell awaits."""
        import asyncio  # only for cells that await, because the import is slow

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)  # because asyncio.run() unsets it
        return self._loop

    @property
    def idle_loop(self):
        """The event loop of the session, or None."""
        return self._loop

    def forget_loop(self):
        """Drops the event loop, so that the next cell that awaits creates a new one."""
        self._loop = None


def run(source, number, namespace):
    """Runs a cell. Returns the value of its last expression, or NOTHING if it has none, or if that is None.

    Raises the error of the cell. For syntax of another tool, such as `!ls`, its message says what to write instead.
    """
    filename = explain.cell_filename(number)
    namespace.remember_source(source, filename)
    pieces, needs_loop = _compile(source, filename, namespace)
    try:
        value = _run_on_loop(pieces, namespace) if needs_loop else _run(pieces, namespace.scope)
    except Exception as error:
        hints.explain(error)
        raise
    if value is None or value is NOTHING:
        return NOTHING
    namespace.remember_value(value)
    return value


def rehearse():
    """Compiles and runs a cell without an effect."""
    filename = explain.cell_filename(0)
    explain.remember_source("1", filename)
    nowhere = types.SimpleNamespace(flags=0, scope={"__builtins__": {}})
    pieces, _ = _compile("1", filename, nowhere)
    explain.forget_source(filename)
    return _run(pieces, nowhere.scope)


def _compile(source, filename, namespace):
    """Compiles a cell. Returns ((code objects, True if the last one is an expression to show), True if they need an event loop)."""
    flags = namespace.flags | _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = compile(source, filename, "exec", flags | _ast.PyCF_ONLY_AST, dont_inherit=True)
        last = tree.body[-1] if tree.body else None
        is_shown = type(last) is _ast.Expr and not _is_silenced(source, last)
        pieces, needs_loop = [], _names_loop(source, tree)
        if is_shown:
            tree.body.pop()
        if tree.body:
            pieces.append(compile(tree, filename, "exec", flags, dont_inherit=True))
            flags |= sum(flag for flag in _FUTURE if flag & pieces[0].co_flags & ~flags)
        if is_shown:
            pieces.append(compile(_ast.Expression(last.value), filename, "eval", flags, dont_inherit=True))
    except SyntaxError as error:
        hints.explain_syntax(error, source)
        raise
    namespace.flags = flags
    return (pieces, is_shown), needs_loop or any(piece.co_flags & _COROUTINE for piece in pieces)


def _is_silenced(source, last):
    """True if a semicolon follows the last expression."""
    start = 0
    for _ in range(last.end_lineno - 1):
        start = _NEWLINE.search(source, start).end()
    line = _NEWLINE.split(source[start:], maxsplit=1)[0].encode()
    end = start + len(line[: last.end_col_offset].decode())  # the compiler counts bytes
    return _SEMICOLON.match(source, end) is not None


def _names_loop(source, tree):
    """True if the cell, outside its functions, calls something that needs a running event loop."""
    if not any(name in source for name in _NEED_LOOP):
        return False
    left = list(tree.body)
    while left:
        node = left.pop()
        if isinstance(node, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.Lambda)):
            continue
        if isinstance(node, _ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            if name in _NEED_LOOP:
                return True
        for field in node._fields:
            child = getattr(node, field, None)
            left += [each for each in child if isinstance(each, _ast.AST)] if isinstance(child, list) else ()
            left += [child] if isinstance(child, _ast.AST) else ()
    return False


def _run(pieces, scope):
    codes, is_shown = pieces
    value = NOTHING
    for code in codes:
        value = eval(code, scope)  # noqa: S307 - this is the purpose
    return value if is_shown else NOTHING


def _run_on_loop(pieces, namespace):
    """Runs a cell as a task of the session's loop. Tasks that the cell starts continue while later cells await."""
    import asyncio

    loop, after = namespace.loop(), []
    task = loop.create_task(_evaluate(pieces, namespace.scope, after))
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        if task.done():
            task.exception()  # otherwise asyncio warns that it was never retrieved
            raise
        # The interrupt came between two steps of the task, which would otherwise continue in the next cell.
        task.cancel()
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError as cancelled:
            raise KeyboardInterrupt().with_traceback(_place_in_cell(cancelled)) from None
    finally:
        for variable, value in after:
            variable.set(value)


def _place_in_cell(cancelled):
    """Returns the traceback of the line where a cell was cancelled. Python 3.10 raises a new error, whose context is the error of
    the cell. Later versions raise the error of the cell, whose context is the interrupt."""
    for error in (cancelled, cancelled.__context__):
        step = error and error.__traceback__
        while step is not None:
            if explain.is_script(step.tb_frame.f_code.co_filename):
                return error.__traceback__
            step = step.tb_next
    return cancelled.__traceback__


async def _evaluate(pieces, scope, after):
    """Runs a cell in a task. Adds the context variables that it has set to `after`, because a task has its own context."""
    before = contextvars.copy_context()
    try:
        codes, is_shown = pieces
        value = NOTHING
        for code in codes:
            value = eval(code, scope)  # noqa: S307 - as in _run
            if code.co_flags & _COROUTINE:
                value = await value
        return value if is_shown else NOTHING
    finally:
        now = contextvars.copy_context()
        after += [(variable, value) for variable, value in now.items() if before.get(variable, NOTHING) is not value]
