"""Receives the files that arrive before a run, and validates its request."""

import binascii

from ..caps import MAX_TOOL_SOURCE_BYTES, MAX_TOOL_SOURCES
from .paths import format_path
from .scratch import put

WIPE_SEC = 0.4


class Intake:
    """The files of the next run. A run never sees files that were sent for another execution id."""

    def __init__(self, workspace, roots):
        self._workspace = workspace
        self._roots = roots
        self._id = None
        self._problem = None

    def put(self, frame):
        """Writes a chunk of a file into the workspace. A failure is reported when its run starts."""
        self._switch_to(frame["execution_id"])
        if self._problem is not None:
            return
        try:
            content = binascii.a2b_base64(frame["content_base64"])
            put(self._workspace, frame["path"], frame["mode"], frame["offset"], content)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._problem = f"the file {format_path(frame['path'])} could not be put into the workspace: {reason}"

    def problem_of(self, frame):
        """Returns (kind, message) of the problem that prevents a run from starting, or None."""
        self._switch_to(frame["execution_id"])
        problem = self._problem
        self.forget()
        return problem_of_request(frame) if problem is None else ("request", problem)

    def forget(self):
        """Forgets the files, once the run has started or they were wiped."""
        self._id = self._problem = None

    def _switch_to(self, run_id):
        if self._id not in (None, run_id):
            self._roots.wipe(WIPE_SEC)
            self._problem = None
        self._id = run_id


def problem_of_request(frame):
    """Returns (kind, message) of a problem in an `execute` frame, or None."""
    missing = [name for name in frame["required_secrets"] if name not in frame["secrets"]]
    if missing:
        return "secrets", f"required secrets are missing: {', '.join(missing)}"
    problem = _find_source_problem(frame.get("tool_sources") or ())
    return None if problem is None else ("request", problem)


def _find_source_problem(sources):
    """Returns a message if the Python tools of a run exceed a limit, or None."""
    if len(sources) > MAX_TOOL_SOURCES:
        return f"the run brings {len(sources)} Python tools; at most {MAX_TOOL_SOURCES} are allowed"
    for source in sources:
        size = len(source["source"].encode(errors="surrogatepass"))
        if size > MAX_TOOL_SOURCE_BYTES:
            return f"the source of the Python tool {source['name']} has {size} bytes; at most {MAX_TOOL_SOURCE_BYTES} are allowed"
    return None
