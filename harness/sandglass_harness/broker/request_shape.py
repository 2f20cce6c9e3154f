"""The shape of requests: the schemas of src/protocol/host-frames.ts, for the fields that the broker reads.

Only a defective host or channel sends anything else. An invalid request ends the sandbox with a one-line reason before any
part of it takes effect. src/engines/pyodide/request-shape.ts has the same table; a test compares them.
"""

import json
import sys

from ..caps import MAX_EXECUTION_ID, MAX_NONCE
from ..wire import BeyondFloat, parse_finite, reject_constant

MAX_MODE = 0o777


def read(line, fields=None):
    """Parses a line of the host. `fields` are the checks by type and field, FIELDS by default. Raises ValueError, whose message
    names the fault and quotes nothing of the line."""
    try:
        frame = _DECODER.decode(line.decode())  # json would detect other encodings in bytes
    except BeyondFloat:
        raise ValueError("a number is beyond the range of a float") from None
    except (ValueError, RecursionError):
        raise ValueError("a line is not JSON") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise ValueError("a line is not a frame with a type")
    for name, is_sound in (FIELDS if fields is None else fields).get(frame["type"], ()):
        if not is_sound(frame.get(name)):
            raise ValueError(f"{frame['type']} has an invalid {name}")
    return frame


_DECODER = json.JSONDecoder(parse_constant=reject_constant, parse_float=parse_finite)


def is_text(value):
    return isinstance(value, str)


def is_id(value):
    return isinstance(value, str) and 0 < len(value) <= MAX_EXECUTION_ID


def _is_nonce(value):
    return isinstance(value, str) and len(value) <= MAX_NONCE


def is_count(value):
    return type(value) is int and value >= 0


def is_positive(value):
    return type(value) is int and value > 0


def is_mode(value):
    return type(value) is int and 0 <= value <= MAX_MODE


def is_time(value):
    return type(value) in (int, float) and 0 < value <= sys.float_info.max


def _is_amount(value):
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max


def _is_amount_or_absent(value):
    return value is None or _is_amount(value)


def is_flag(value):
    return type(value) is bool


def _is_object(value):
    return isinstance(value, dict)


def is_texts(value):
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_table(value):
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_limits(value):
    return isinstance(value, dict) and all(is_positive(value[name]) for name in ("memory_bytes", "pids") if name in value)


def _are_tools(value):
    return value is None or _is_objects(value)


def _is_objects(value):
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _are_sources(value):
    return value is None or (_is_objects(value) and all(_is_source(item) for item in value))


def _is_source(value):
    return all(isinstance(value.get(name), str) for name in ("name", "source", "stub"))


def _is_endpoint_or_absent(value):
    return value is None or (isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("host", "token")))


def _is_text_or_absent(value):
    return value is None or isinstance(value, str)


def _is_flag_or_absent(value):
    return value is None or is_flag(value)


def _are_collect_limits(value):
    return value is None or (
        isinstance(value, dict)
        and all(value.get(name) is None or is_positive(value[name]) for name in ("max_files", "max_file_bytes", "max_total_bytes"))
    )


_WRAPPER_CODE = (("preamble", _is_text_or_absent), ("postamble", _is_text_or_absent))
FIELDS = {
    "execute": (
        ("execution_id", is_id),
        ("script", is_text),
        ("timeout_sec", is_time),
        ("max_output_bytes", is_positive),
        ("inputs", _is_object),
        ("secrets", is_table),
        ("required_secrets", is_texts),
        ("collect", is_texts),
        ("collect_limits", _are_collect_limits),
        ("limits", _is_limits),
        ("tools", _are_tools),
        ("tool_sources", _are_sources),
        ("tool_endpoint", _is_endpoint_or_absent),
        ("stdin_base64", _is_text_or_absent),
        ("max_tool_wait_sec", _is_amount_or_absent),
        *_WRAPPER_CODE,
    ),
    "check": (
        ("execution_id", is_id),
        ("script", is_text),
        ("mode", is_text),
        ("policy", is_text),
        ("timeout_sec", is_time),
        ("whole", _is_text_or_absent),
        ("names", is_texts),
        ("allow_modules", is_texts),
        ("files", _is_flag_or_absent),
        ("list_tools", _is_flag_or_absent),
        ("tools", _is_objects),
        *_WRAPPER_CODE,
    ),
    "tool_result": (("execution_id", is_id), ("id", is_text)),
    "tool_time": (("execution_id", is_id), ("executed_ms", _is_amount), ("executing", is_flag)),
    "file_put": (
        ("execution_id", is_id),
        ("path", is_text),
        ("mode", is_mode),
        ("offset", is_count),
        ("content_base64", is_text),
    ),
    "cancel": (("execution_id", is_id),),
    "ping": (("nonce", _is_nonce),),
    "reset": (("nonce", _is_nonce),),
}
