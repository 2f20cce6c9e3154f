"""Runs the cells of a session in this process, one after the other, in the same globals."""

import os
import sys

from .. import text
from ..caps import MAX_VALUE_BYTES
from ..script import display, emit, runtime, script_process, tool_functions
from ..script.convert import to_json_with_nulls
from ..wire import encode
from . import cells, hints

_REHEARSAL = b"""{"script": "1", "inputs": {}, "secrets": {}, "limits": {}, "deadline": null, "timeout_text": "30", "announces_script": false,
"tools": null, "tool_sources": null, "stdin_base64": null, "preamble": null, "postamble": null, "check": null, "cell": {"number":
0}}"""
MAX_ITEMS = 100_000  # at all depths of a value that is converted to JSON; walking a larger one takes too long


class Cells:
    """The cells of one session, and the state of the harness that lasts from one to the next. `describe()` returns what a copy of
    this process would lack; None if the session has no copies."""

    def __init__(self, namespace, emitter, make_bridge, describe=None):
        self._namespace = namespace
        self._scope = namespace.scope
        self._emitter, self._silent = emitter, emit.SilentEmitter(None)
        self._make_bridge = make_bridge
        self._describe = describe
        self._sources = {}  # the Python tools that were loaded, by name
        self._has_input = False
        self._code = None  # the exit code of the current cell; None until it is done
        self._pid = None  # of the process that began the current cell, which may fork others

    def run(self, request):
        """Serves the request of one cell, and reports that it is finished. Returns its exit code: 1 after an error, else 0."""
        self._take_input(request.get("stdin_base64"))
        before = self._take_secrets(request["secrets"])
        self._code, self._pid = None, os.getpid()
        try:
            self._serve(request)
        except (emit.ScriptTimeout, KeyboardInterrupt) as second:  # a second signal, during the report of the first
            emit.allow_interrupt(False)
            emit.disarm()
            if self._code is None:
                runtime.report_ending(self._emitter, second, request["timeout_text"])
        runtime.end_fork(self._pid)
        self._restore_environment(request["secrets"], before)
        self._send_finished()
        return 0 if self._code == 0 else 1

    def _serve(self, request):
        try:
            emit.allow_interrupt(True)
            if emit.take_missed_interrupt():
                self._emitter.send({"type": "interrupt_missed"})
            emit.arm()
            self._code = self._execute(request)
            emit.disarm()
        except emit.ScriptTimeout:
            if self._code is None:  # otherwise the cell was already done
                runtime.report_timeout(self._emitter, request["timeout_text"])
        except KeyboardInterrupt as interrupt:  # between the lines of this function
            if self._code is None:
                runtime.report_ending(self._emitter, interrupt, request["timeout_text"])
        finally:
            emit.allow_interrupt(False)
            emit.disarm()

    def rehearse(self):
        """Does what every cell does, without an effect. After a fork, memory is shared with the copy until it is written to, and
        these page faults would dominate the time of a short cell."""
        try:
            request, silent = script_process.parse(bytearray(_REHEARSAL)), self._silent
            self._restore_environment({}, self._take_secrets(request["secrets"]))
            emit.allow_interrupt(False)
            emit.disarm()
            runtime.load_sources([], self._scope, silent)
            self._scope.update(request["inputs"])
            value = cells.rehearse()
            self._show(value, silent)
            display.rehearse(value, silent)
            silent.send_line(self._finished_line())
        except Exception:  # cells have changed Python, or memory is short; the next cell reports it
            pass

    def _execute(self, request):
        try:
            if not self._give_tools(request):
                return 1
            self._scope.update(request["inputs"])
            if request.get("announces_script", True):
                self._emitter.send({"type": "setup_over"})
            display.begin()
            try:
                value = cells.run(request["script"], request["cell"]["number"], self._namespace)
                runtime.end_fork(self._pid)
                if value is not cells.NOTHING:
                    self._show(value, self._emitter)
                    if value is not None:
                        display.show_result(value)
            finally:
                if os.getpid() == self._pid and not emit.clock_ran_out():
                    display.flush_figures()
        except BaseException as error:
            runtime.end_fork(self._pid, error)
            note = hints.note_of_timeout(error) if isinstance(error, emit.ScriptTimeout) else ""
            return runtime.report_ending(self._emitter, error, request["timeout_text"], note=note)[1]
        return 0

    def _show(self, value, emitter):
        """Sends the value of a cell if JSON can represent it."""
        try:
            if _is_large(value):
                return
            plain, nulls = to_json_with_nulls(value)
        except Exception:  # also from methods of the value
            return
        line = emitter.line_of({"type": "value", "data": plain, **({} if nulls is None else {"nan_as_null": nulls})})
        if len(line) <= MAX_VALUE_BYTES:
            emitter.hold_line(line)

    def _give_tools(self, request):
        """Replaces the tools of the last cell by those of this one. Returns False after it has reported a failure."""
        signatures, sources = request.get("tools") or (), request.get("tool_sources") or ()
        given = {}
        if signatures or sources:
            stubs = {source["name"]: source["stub"] for source in sources}
            given = tool_functions.make_functions(signatures, self._make_bridge(), stubs)
        new = [source for source in sources if self._sources.get(source["name"]) != source["source"]]
        if not runtime.load_sources(new, self._scope, self._emitter):
            return False
        self._sources.update((source["name"], source["source"]) for source in new)
        self._namespace.lend(given)
        return True

    def _take_input(self, content):
        if content is not None or self._has_input:
            fd = os.open("/dev/null", os.O_RDONLY)
            os.dup2(fd, 0)
            os.close(fd)
            script_process.give_input(content)
            sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
        self._has_input = content is not None

    def _take_secrets(self, secrets):
        """Puts the secrets of a cell into the environment, and registers them to be hidden in texts that are cut. Returns the values that
        they replace."""
        before = {name: os.environ.get(name) for name in secrets}
        if secrets:  # a cell may have replaced os.environ
            os.environ.update(secrets)
        text.hide(secrets)
        return before

    def _restore_environment(self, secrets, before):
        for name, value in secrets.items():
            if os.environ.get(name) != value:
                continue
            if before[name] is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before[name]

    def _send_finished(self):
        runtime.flush_streams()
        line = self._finished_line()
        try:
            # Written by the emitter, because a thread that still runs may be in the middle of a line.
            self._emitter.send_line(line)
        except (OSError, emit.ScriptTimeout):  # an alarm that was deferred to the end of a line
            pass

    def _finished_line(self):
        return encode({"type": "finished", **({} if self._describe is None else {"checkpoint": self._describe()})})


def _is_large(value):
    """True if the JSON of a value would be too large, whose conversion could use up the time and memory of the cell."""
    size = getattr(value, "size", None)
    if type(size) is int and size > MAX_ITEMS:
        return True
    if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and len(value) > MAX_ITEMS:
        return True
    items, characters, left = MAX_ITEMS, MAX_VALUE_BYTES, [value]
    while left:
        each = left.pop()
        kind = type(each)
        if kind is str:
            characters -= len(each)
        elif issubclass(kind, dict):  # as in the conversion, without methods of a subclass
            items -= dict.__len__(each)
            if items >= 0:
                left += (*dict.keys(each), *dict.values(each))
        elif kind in (list, tuple, set, frozenset):
            items -= len(each)
            if items >= 0:
                left += each
        if items < 0 or characters < 0:
            return True
    return False
