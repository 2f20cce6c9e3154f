"""Calls of tools that run on the host: one frame out, one frame in.

Calls from several threads, and from `asyncio.gather`, run concurrently. A synchronous call reads its own answer, so that it
needs no second thread. The reading thread hands other answers to the calls that wait for them.
"""

import json
import os
import re
import struct
import sys
import threading

from ..caps import MAX_ARG_BYTES, MAX_ARG_PARTS
from .convert import ConversionError, to_json
from .door import TOOL_FILENAME, remove_harness
from .explain import is_script

READ_SIZE = 1 << 16
BIG_READ_SIZE = 1 << 20


class ToolError(Exception):
    """A failed call of a tool. `code` is the machine-readable reason; the message explains it."""

    def __init__(self, message="", code="tool_failed"):
        super().__init__(message)
        self.code = code


ToolError.__module__ = "__main__"  # reported and looked up as a name of the script


class Record(dict):
    """An object from a tool's answer: `r["name"]`, or `r.name` where dict has no method of that name."""

    __slots__ = ()

    def __getattr__(self, name):
        if name in self:
            return self[name]
        try:
            known = ", ".join(sorted(str(key) for key in self)[:20])
            raise AttributeError(f"the object has no field {name!r}; it has {known or 'none'}")
        except BaseException as error:
            error.__traceback__ = None  # as in door.py, without the cost of a wrapper
            raise

    def __reduce__(self):
        return dict, (dict(self),)


_decode = json.JSONDecoder(object_hook=Record).raw_decode  # created once, because json.loads would create a decoder for each call
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


def _refuse_large(tool, line, head):
    """Raises ToolError for arguments that are too large for the host. `head` is the length of the line without them."""
    size = len(line) - head
    if size > MAX_ARG_BYTES:
        raise ToolError(f"{tool}: the arguments have {size} bytes; at most {MAX_ARG_BYTES} are allowed", "invalid_arguments")
    outside = _STRING.sub(b"", line)
    if sum(map(outside.count, (b",", b":", b"[", b"{"))) > MAX_ARG_PARTS:
        limit = f"send fewer at a time (at most {MAX_ARG_PARTS} commas, colons and brackets as JSON)"
        raise ToolError(f"{tool}: the arguments hold too many values; {limit}", "invalid_arguments")


def _line_in_script():
    """Returns the number of the calling line of the script, or None if no line of it is on the stack."""
    frame = sys._getframe(2)
    while frame is not None and not is_script(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


class _Waiter:
    """A pending call. The lock `turn` is released when its answer has arrived, or when its thread must read the next answers."""

    __slots__ = ("answer", "turn")

    def __init__(self):
        self.answer = None
        self.turn = threading.Lock()
        self.turn.acquire()

    def wake(self):
        """Releases the lock. Idempotent."""
        try:
            self.turn.release()
        except RuntimeError:
            pass


class Bridge:
    """The calls of one run."""

    def __init__(self, fd, emitter, read=None):
        self._read = (lambda size: os.read(fd, size)) if read is None else read
        self._emitter = emitter
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._waiting = {}
        self._count = 0
        self._buffer = bytearray()
        self._reader = None

    def call(self, tool, args):
        """Returns the tool's answer, or an awaitable in async code. Raises ToolError."""
        if os.getpid() != self._pid:
            raise ToolError(f"{tool} was called in a forked process; call it in the script's own process", "wrong_process")
        asyncio = sys.modules.get("asyncio")
        loop = asyncio._get_running_loop() if asyncio is not None else None
        if loop is not None:
            return self._call_from_loop(loop, tool, args)
        waiter = _Waiter()
        call_id = self._register(waiter)
        try:
            self._send(call_id, tool, args)
            self._wait(waiter)
        finally:
            self._waiting.pop(call_id, None)
        error = _error_of(waiter.answer)
        if error is not None:
            raise error
        return waiter.answer.get("result")

    def reset(self):
        """Starts over after the file descriptor was replaced under the same number. Pending calls get the error `cancelled`."""
        if os.getpid() != self._pid:  # this process is a forked copy, without the waiting threads
            self._pid, self._lock, self._reading = os.getpid(), threading.Lock(), threading.Lock()
            self._waiting, self._reader = {}, None
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for waiter in waiting.values():
            waiter.answer = {"error": {"code": "cancelled", "message": "the cell that made this call has ended"}}
            waiter.wake()
        self._buffer.clear()

    # ── synchronous calls ─────────────────────────────────────────────────────────────────────────────────────────────

    def _register(self, waiter):
        with self._lock:
            self._count += 1
            call_id = str(self._count)
            self._waiting[call_id] = waiter
        return call_id

    def _send(self, call_id, tool, args):
        try:
            plain = to_json(args)
        except ConversionError as error:
            raise ToolError(f"{tool}: the arguments cannot be sent: {error}", "invalid_arguments") from None
        call = {"type": "tool_call", "id": call_id, "name": tool, "line": _line_in_script(), "args": plain}
        line = self._emitter.line_of(call)
        if len(line) > MAX_ARG_PARTS:  # a shorter line exceeds neither limit
            _refuse_large(tool, line, len(self._emitter.line_of({**call, "args": {}})) - 2)
        self._emitter.send_line(line)

    def _wait(self, waiter):
        while waiter.answer is None:
            if self._reading.acquire(blocking=False):
                try:
                    while waiter.answer is None:
                        self._read_once()
                finally:
                    self._reading.release()
                    self._wake_next_reader()
            else:
                waiter.turn.acquire()

    def _wake_next_reader(self):
        """Wakes the thread of another waiting call, which then reads."""
        with self._lock:
            for other in self._waiting.values():
                if other.answer is None:
                    other.wake()
                    return

    def _read_once(self):
        missing = self._count_missing()
        data = self._read(READ_SIZE if missing < READ_SIZE else BIG_READ_SIZE)
        if not data:
            raise ToolError("the connection to the host is closed", "cancelled")
        self._buffer += data
        while self._count_missing() == 0:
            (length,) = struct.unpack_from("=I", self._buffer)
            if length == 0:  # an empty message only wakes the reader
                del self._buffer[:4]
                continue
            answer, _ = _decode(str(memoryview(self._buffer)[4 : 4 + length], "utf-8"))
            del self._buffer[: 4 + length]
            self._take(answer)

    def _count_missing(self):
        """Returns how many bytes of the next message are missing."""
        held = len(self._buffer)
        if held < 4:
            return 4 - held
        (length,) = struct.unpack_from("=I", self._buffer)
        return max(0, 4 + length - held)

    def _take(self, answer):
        with self._lock:
            waiter = self._waiting.pop(answer["id"], None)
        if waiter is not None:
            waiter.answer = answer
            waiter.wake()

    # ── calls from async code ───────────────────────────────────────────────────────────────────────────────────

    def _call_from_loop(self, loop, tool, args):
        pending = PendingCall(loop)
        call_id = self._register(pending)
        try:
            self._send(call_id, tool, args)
        except BaseException as error:
            self._waiting.pop(call_id, None)
            if not isinstance(error, ToolError):
                raise
            pending.future.set_exception(error.with_traceback(None))
            return await_answer(tool, pending.future)
        with self._lock:
            if self._reader is None:
                self._reader = threading.Thread(target=self._read_forever, name="sandglass-answers", daemon=True)
                self._reader.start()
        return await_answer(tool, pending.future)

    def _read_forever(self):
        with self._reading:
            try:
                while True:
                    self._read_once()
            except BaseException as error:  # for example a MemoryError for a large answer
                reason = str(error) if isinstance(error, ToolError) else type(error).__name__
                failed = {"error": {"code": "cancelled", "message": f"reading the tool's answer failed: {reason}"}}
        with self._lock:
            self._reader = None
            waiting, self._waiting = self._waiting, {}
        for waiter in waiting.values():
            waiter.answer = failed
            waiter.wake()


def await_answer(tool, future):
    """Returns an awaitable for the answer of a tool. It is a coroutine, because create_task and TaskGroup accept nothing else."""
    coroutine = _await_answer(future)
    coroutine.__name__ = coroutine.__qualname__ = tool  # asyncio shows it, for example if nobody awaits the call
    return coroutine


async def _await_answer(future):
    try:
        return await future
    except BaseException as error:
        remove_harness(error)
        raise


_await_answer.__code__ = _await_answer.__code__.replace(co_filename=TOOL_FILENAME, co_firstlineno=1)


class PendingCall:
    """A pending call that a coroutine awaits."""

    __slots__ = ("_loop", "answer", "future")

    def __init__(self, loop):
        self._loop = loop
        self.answer = None
        self.future = loop.create_future()

    def wake(self):
        """Settles the future. The reader's thread calls it."""
        if self.answer is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            pass  # the loop is closed: nobody waits

    def _settle(self):
        if self.future.done():
            return
        error = _error_of(self.answer)
        if error is None:
            self.future.set_result(self.answer.get("result"))
        else:
            self.future.set_exception(error)


def _error_of(answer):
    error = answer.get("error")
    return None if error is None else ToolError(error["message"], error["code"])
