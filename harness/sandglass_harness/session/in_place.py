"""Runs the cells of a session in this interpreter: for engines whose sandboxes have no processes (Pyodide).

The interpreter serves only this session: the engine discards it afterwards. It cannot be copied, so there are no rollbacks.
"""

import signal

from ..caps import MAX_LISTED_NAMES
from ..script import emit, explain, in_place, runtime, script_process
from ..wire import encode
from . import cell, cells, variables

_session = None


def run_request():
    """Receives and serves one request of the host: a cell, or a request for variables or completions. Returns an exit code."""
    global _session
    if _session is None:
        _session = _Session()
    return _session.serve(script_process.receive())


class _Session:
    """The state that lasts from request to request."""

    def __init__(self):
        self._emitter, preloaded = in_place.begin()
        self._bridge = None
        self._namespace = cells.Namespace(runtime.base_names(preloaded.base_globals))
        self._cells = cell.Cells(self._namespace, self._emitter, self._make_bridge)
        signal.signal(signal.SIGINT, emit.on_interrupt)

    def serve(self, request):
        look = request.get("look")
        if look is not None:
            return self._look(**look)
        if self._bridge is not None:
            self._bridge.reset()
        return self._cells.run(request)

    def _look(self, code, cursor):
        """Lists the variables, or completes a name. It has a deadline, because code of the cells may run."""
        try:
            emit.arm()
            if code is None:
                found = variables.describe(self._namespace)
            else:
                found = variables.complete(self._namespace, code, cursor)
            emit.disarm()
        except BaseException as error:  # from code of a cell
            emit.disarm()
            self._emitter.forget_signals()
            self._emitter.send({"type": "looked", "error": explain.describe_briefly(error)})
            return 1
        self._emitter.send_line(encode({"type": "looked", "found": found[:MAX_LISTED_NAMES]}))
        return 0

    def _make_bridge(self):
        if self._bridge is None:
            self._bridge = in_place.make_bridge()
        return self._bridge
