"""Python tools: files whose functions become globals of every script, and sources that belong to one run.

Plain code can call the async functions of both.
"""

import builtins
import functools
import os
import sys
import threading
import types

from . import emit, explain
from .door import called_by_script

_CO_COROUTINE = 0x80
_SCOPE_NAME = "tools"  # the module name of functions of the tools directory


class ToolLoop:
    """An event loop on its own thread. It starts at first use, because threads do not survive a fork."""

    def __init__(self):
        self._loop = None
        self._lock = threading.Lock()

    def call(self, function, args, kwargs):
        """Runs a coroutine function on the loop and waits for it. Returns an awaitable in async code."""
        import asyncio  # only here, because a process without async tools does not need it

        future = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._start_loop())
        return future.result() if asyncio._get_running_loop() is None else asyncio.wrap_future(future)

    def _start_loop(self):
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="sandglass-tools", daemon=True).start()
            return self._loop


def wrap_async(scope, loop):
    """Replaces each `async def` function in `scope` by a function that plain code can call."""
    for name, value in list(scope.items()):
        if _is_coroutine_function(value):
            scope[name] = _make_synchronous(value, loop)


def _is_coroutine_function(value):
    """Returns the result of inspect.iscoroutinefunction. Importing inspect takes several milliseconds in each run with a tool, so
    it is used only for functions with attributes, which may be markers."""
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, types.MethodType):
        value = value.__func__
    if not isinstance(value, types.FunctionType):
        return False
    if value.__code__.co_flags & _CO_COROUTINE or not value.__dict__:
        return bool(value.__code__.co_flags & _CO_COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(value)


def _make_synchronous(function, loop):
    @called_by_script
    @functools.wraps(function)
    def call(*args, **kwargs):
        return loop.call(function, args, kwargs)

    return call


def list_tool_files(directory):
    """Returns the paths of the `*.py` files of a directory, in order."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    return [os.path.join(directory, n) for n in names if n.endswith(".py") and not n.startswith(".")]


def load_file(path, scope, loop):
    """Executes one tool file into `scope`, whose async functions then run on `loop`. If the file raises, restores the scope and
    raises the same error."""
    before = dict(scope)
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, scope)  # noqa: S102 - the user's own tool
    except BaseException:
        scope.clear()
        scope.update(before)
        raise
    wrap_async(scope, loop)


def fresh_scope():
    """Creates globals for tool files."""
    return {"__name__": _SCOPE_NAME, "__builtins__": builtins, **emit.HELPERS}


def select_public(scope):
    """Returns the globals for scripts: all except names with two leading underscores."""
    return {name: value for name, value in scope.items() if not name.startswith("__")}


def is_from_tools_directory(value):
    """True if a value is a function or class that a file of the tools directory defines."""
    return callable(value) and getattr(value, "__module__", None) == _SCOPE_NAME


def make_loaders(sources):
    """Creates the loaders of a child: pairs of a name for messages and a function that takes the globals."""
    loop = ToolLoop()
    return [(f"the Python tool {source['name']}", _make_source_loader(source, loop)) for source in sources]


def _make_source_loader(source, loop):
    def run(scope):
        scope[source["name"]] = load_source(source["name"], source["source"], loop)

    return run


def load_source(name, source, loop):
    """Executes the source of a tool in a module of its own. Returns the callable of its name. Raises whatever the source
    raises."""
    filename = explain.tool_filename(name)
    explain.remember_source(source, filename)
    module = types.ModuleType(filename)
    # Pickle, dataclasses and typing look its classes up here. No import statement can write this name.
    sys.modules[filename] = module
    scope = module.__dict__
    scope.update({**fresh_scope(), "__name__": filename})
    exec(compile(source, filename, "exec", dont_inherit=True), scope)  # noqa: S102
    if not callable(scope.get(name)):
        raise LookupError(f"its source defines no function {name}")
    found = {name: scope[name]}  # a separate dict, so that async functions stay async inside the module
    wrap_async(found, loop)
    return found[name]
