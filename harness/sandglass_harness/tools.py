"""Tools that are Python themselves: files whose functions become globals of every script (HA-03), sources that one run
brings along, and the async functions of both made callable (HA-04)."""

import builtins
import functools
import os
import sys
import threading
import types

from . import emit, explain

_CO_COROUTINE = 0x80
_SCOPE_NAME = "tools"  # what functions of the tools directory have for their module


class ToolLoop:
    """One event loop on a thread of its own. It starts at first use: threads do not survive a fork."""

    def __init__(self):
        self._loop = None
        self._lock = threading.Lock()

    def call(self, function, args, kwargs):
        """Runs a coroutine function on the loop; waits for it, or gives an awaitable when called from async code."""
        import asyncio  # a process that calls no async tool need not load it

        future = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._started())
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return future.result()
        return asyncio.wrap_future(future)

    def _started(self):
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="sandglass-tools", daemon=True).start()
            return self._loop


def wrap_async(scope, loop):
    """Replaces each `async def` function in `scope` by one that plain code can call."""
    for name, value in list(scope.items()):
        if _is_coroutine_function(value):
            scope[name] = _synchronous(value, loop)


def _is_coroutine_function(value):
    """As inspect says, which would cost each run that brings a tool several milliseconds to load: asked where it may know
    more, of functions that have attributes."""
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


def _synchronous(function, loop):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return loop.call(function, args, kwargs)

    return call


def tool_files(directory):
    """The paths of the `*.py` files of a directory, in order."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    return [os.path.join(directory, n) for n in names if n.endswith(".py") and not n.startswith(".")]


def load_file(path, scope, loop):
    """Executes one tool file into `scope`, whose async functions then run on `loop`. Raises whatever the file raises, and
    leaves the scope as it was."""
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
    """Globals to load tool files into."""
    return {"__name__": _SCOPE_NAME, "__builtins__": builtins, **emit.HELPERS}


def public(scope):
    """What a script sees of the tools: all but names with two leading underscores."""
    return {name: value for name, value in scope.items() if not name.startswith("__")}


def is_of_directory(value):
    """Whether a global of scripts is a function, or a class, that a file of the tools directory defines."""
    return callable(value) and getattr(value, "__module__", None) == _SCOPE_NAME


def loaders(sources):
    """What a child loads before its script: pairs of a name for messages and a function that takes the globals."""
    loop = ToolLoop()
    return [(f"the Python tool {source['name']}", _source_loader(source, loop)) for source in sources]


def _source_loader(source, loop):
    def run(scope):
        scope[source["name"]] = load_source(source["name"], source["source"], loop)

    return run


def load_source(name, source, loop):
    """Executes the source of a tool in a module of its own, and returns what scripts call by its name. Raises whatever it
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
    found = {name: scope[name]}  # inside its module, async functions stay what they are
    wrap_async(found, loop)
    return found[name]
