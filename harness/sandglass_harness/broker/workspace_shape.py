"""The shape of requests in workspace mode, in addition to those that every broker serves."""

import signal

from ..caps import MAX_REQUEST_LINE_BYTES
from . import request_shape
from .request_shape import is_count, is_flag, is_id, is_mode, is_positive, is_table, is_text, is_texts, is_time

MAX_CODE = 4096  # characters of the code to complete
PROGRAM_LIMITS = ("memory_bytes", "pids", "cpu_sec", "file_bytes", "open_files")


def _is_program(value):
    return is_texts(value) and len(value) > 0 and len(value[0]) > 0 and not any("\0" in item for item in value)


def _is_environment(value):
    return is_table(value) and all(name and not {"=", "\0"} & set(name) and "\0" not in value[name] for name in value)


def _is_terminal(value):
    return value is None or (isinstance(value, dict) and all(_is_cells(value.get(name)) for name in ("rows", "columns")))


def _is_cells(value):
    return type(value) is int and 0 < value < 1 << 16


def _is_time_or_absent(value):
    return value is None or is_time(value)


def _is_input(value):
    return value in ("none", "pipe")


def _are_program_limits(value):
    return isinstance(value, dict) and all(name in PROGRAM_LIMITS and is_positive(value[name]) for name in value)


def _is_id_or_absent(value):
    return value is None or is_id(value)


def _is_cell_or_absent(value):
    return value is None or (
        isinstance(value, dict) and is_positive(value.get("number")) and value.get("on_error") in ("keep", "rollback")
    )


def _are_session_limits(value):
    return isinstance(value, dict) and all(name in ("memory_bytes", "pids") and is_positive(value[name]) for name in value)


def _is_code_or_absent(value):
    return value is None or (is_text(value) and len(value) <= MAX_CODE)


def _is_signal(value):
    return isinstance(value, str) and value in signal.Signals.__members__


def _is_body_size(value):
    return is_positive(value) and value <= MAX_REQUEST_LINE_BYTES


def _is_port(value):
    return type(value) is int and 0 < value < 1 << 16


def _is_count_or_absent(value):
    return value is None or is_count(value)


def _are_texts_or_absent(value):
    return value is None or is_texts(value)


# The fields that the body of a request may hold instead. The broker forwards the body without parsing it.
_IN_BODY = ("script", "inputs", "tool_sources", "stdin_base64", "preamble", "postamble")
# The fields of a cell; both are absent in a script.
_CELL = (("session", _is_id_or_absent), ("cell", _is_cell_or_absent))
_ID, _WINDOW = ("execution_id", is_id), ("window", is_positive)
FIELDS = {
    **{kind: request_shape.FIELDS[kind] for kind in ("tool_result", "tool_time", "cancel", "ping")},
    "execute": (*request_shape.FIELDS["execute"], *_CELL),
    "execute_in_parts": (
        *(field for field in request_shape.FIELDS["execute"] if field[0] not in _IN_BODY),
        *_CELL,
        ("body_bytes", _is_body_size),
    ),
    "start": (
        _ID,
        ("argv", _is_program),
        ("env", _is_environment),
        ("cwd", is_text),
        ("stdin", _is_input),
        ("tty", _is_terminal),
        ("timeout_sec", _is_time_or_absent),
        ("limits", _are_program_limits),
        _WINDOW,
    ),
    "session": (_ID, ("limits", _are_session_limits), ("checkpoints", is_flag), ("memory_bytes", _is_count_or_absent)),
    "session_branch": (_ID, ("session", is_id), ("checkpoint", _is_id_or_absent)),
    "session_checkpoint": (_ID, ("session", is_id)),
    "session_restore": (_ID, ("session", is_id), ("checkpoint", is_id)),
    "session_release": (_ID, ("session", is_id), ("checkpoint", is_id)),
    "session_look": (_ID, ("session", is_id), ("code", _is_code_or_absent), ("cursor", is_count)),
    "interrupt": (_ID,),
    "input": (_ID,),
    "input_end": (_ID,),
    "resize": (_ID, ("rows", _is_cells), ("columns", _is_cells)),
    "signal": (_ID, ("signal", _is_signal)),
    "credit": (_ID, ("stream", is_text), ("bytes", is_positive)),
    "dial": (_ID, ("port", _is_port), _WINDOW),
    "files_write": (_ID,),
    "files_read": (
        _ID,
        ("paths", is_texts),
        ("max_file_bytes", _is_count_or_absent),
        ("max_total_bytes", _is_count_or_absent),
        _WINDOW,
    ),
    "file_list": (
        _ID,
        ("path", is_text),
        ("patterns", _are_texts_or_absent),
        ("max_entries", is_positive),
        ("hidden", is_flag),
        ("follow", is_flag),
        _WINDOW,
    ),
    "file_stat": (_ID, ("path", is_text)),
    "file_make": (_ID, ("path", is_text), ("mode", is_mode)),
    "file_remove": (_ID, ("path", is_text), ("recursive", is_flag)),
    "file_digest": (_ID, ("path", is_text)),
}
