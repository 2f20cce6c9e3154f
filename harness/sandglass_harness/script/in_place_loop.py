"""Waits in an interpreter without threads: for answers of host tools, and in asyncio's event loop.

There is no other thread, so the waiting code also reads. To limit a wait, it asks the host to send an empty message after that
time.
"""

import asyncio
import functools
import time

from . import host_tools
from .door import called_by_script, remove_harness

POLL_SEC = 0.002  # between two polls for answers, in a loop that is never idle


class Bridge(host_tools.Bridge):
    """The calls of one run."""

    def __init__(self, fd, emitter):
        super().__init__(fd, emitter)
        self._polled_at = 0.0

    def _call_from_loop(self, loop, tool, args):
        pending = host_tools.PendingCall(loop)
        call_id = self._register(pending)
        try:
            self._send(call_id, tool, args)
        except BaseException as error:
            self._waiting.pop(call_id, None)
            if not isinstance(error, host_tools.ToolError):
                raise
            pending.future.set_exception(error.with_traceback(None))
        return host_tools.await_answer(tool, pending.future)

    def _read_once(self):
        super()._read_once()
        for _ in range(64):  # Python checks for signals only every few steps, and a signal may have ended the read
            pass

    @property
    def has_pending(self):
        """True if a call waits for its answer."""
        return bool(self._waiting)

    def wait(self, seconds):
        """Waits at most `seconds` for an answer. None waits without a limit."""
        if seconds is not None:
            if seconds <= 0 and time.monotonic() - self._polled_at < POLL_SEC:
                return
            self._polled_at = time.monotonic()
            self._emitter.send({"type": "wake", "after": min(max(seconds, 0), 3600)})
        self._read_once()


class CallSelector:
    """The selector of the event loop. The only events are answers to tool calls."""

    def __init__(self):
        self.bridge = None

    @called_by_script
    def select(self, timeout):
        """Waits like a selector without registered files."""
        if self.bridge is not None and self.bridge.has_pending:
            self.bridge.wait(timeout)
        elif timeout is None:
            time.sleep(3600)  # only the deadline can end this wait
        elif timeout > 0:
            time.sleep(timeout)
        return []


class EventLoop(asyncio.base_events.BaseEventLoop):
    """asyncio without sockets, pipes, threads and processes."""

    def __init__(self, calls):
        super().__init__()
        self._selector = calls

    def _process_events(self, _events):
        pass

    def _write_to_self(self):
        pass  # no other thread can add a callback

    def run_in_executor(self, executor, func, *args):
        """Runs the function immediately in this thread."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except (SystemExit, KeyboardInterrupt):
            raise
        except Exception as error:
            remove_harness(error)
            future.set_exception(error)
        return future

    async def shutdown_default_executor(self, _timeout=None):
        """Does nothing: there is no executor."""


def install(calls):
    """Makes EventLoop the loop of asyncio.run and asyncio.new_event_loop."""
    make = functools.partial(EventLoop, calls)

    class Policy(asyncio.events._BaseDefaultEventLoopPolicy):
        _loop_factory = staticmethod(make)

    asyncio.events._set_event_loop_policy(Policy())
    asyncio.events._set_running_loop(None)
    asyncio.run = asyncio.runners.run  # Pyodide replaced it


class ToolLoop:
    """Lets plain code call the coroutine functions of tool files."""

    def call(self, function, args, kwargs):
        """Runs a coroutine function to its end. Returns an awaitable in async code."""
        coroutine = function(*args, **kwargs)
        if asyncio._get_running_loop() is not None:
            return coroutine
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()
