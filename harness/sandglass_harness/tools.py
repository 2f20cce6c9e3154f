"""Python files whose functions become globals of every script (HA-03), and their async functions made callable (HA-04)."""

import asyncio
import builtins
import functools
import inspect
import os
import threading

from . import emit


class ToolLoop:
    """One event loop on a thread of its own. It starts at first use: threads do not survive a fork."""

    def __init__(self):
        self._loop = None
        self._lock = threading.Lock()

    def call(self, function, args, kwargs):
        """Runs a coroutine function on the loop; waits for it, or gives an awaitable when called from async code."""
        future = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._started())
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return future.result()
        return asyncio.wrap_future(future)

    def _started(self):
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="sandglass-tools", daemon=True).start()
            return self._loop


def wrap_async(scope, loop):
    """Replaces each `async def` function in `scope` by one that plain code can call."""
    for name, value in list(scope.items()):
        if inspect.iscoroutinefunction(value):
            scope[name] = _synchronous(value, loop)


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


def load_file(path, scope):
    """Executes one tool file into `scope`. Raises whatever the file raises."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, scope)  # noqa: S102


def fresh_scope():
    """Globals to load tool files into."""
    return {"__name__": "tools", "__builtins__": builtins, **emit.HELPERS}


def public(scope):
    """What a script sees of the tools: all but names with two leading underscores."""
    return {name: value for name, value in scope.items() if not name.startswith("__")}
