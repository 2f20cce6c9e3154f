"""Encodes frames as lines of JSON, and decodes those of a script."""

import json

from .caps import MAX_DEPTH, MAX_SAFE_INTEGER

# Created once: json.dumps would create an encoder for each call.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_as_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def encode(frame):
    """Encodes a frame as a line."""
    try:
        return _encode(frame).encode() + b"\n"
    except UnicodeEncodeError:  # lone surrogates travel escaped
        return _encode_as_ascii(frame).encode() + b"\n"


def decode(line):
    """Parses a line from a script's process. Raises ValueError for a value that the host could not represent."""
    try:
        frame = _decode(line.decode())
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(frame, dict):
        raise ValueError("not a JSON object")
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _is_deeper(frame, MAX_DEPTH + 1):
        raise ValueError("nested too deep")
    return frame


def _is_deeper(value, levels):
    """True if a value has more levels of containers. Does not recurse."""
    level = [value]
    for _ in range(levels):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _safe_integer(digits):
    if len(digits) > 17:
        raise ValueError("an integer beyond 2**53")
    value = int(digits)
    if abs(value) > MAX_SAFE_INTEGER:
        raise ValueError("an integer beyond 2**53")
    return value


class BeyondFloat(ValueError):
    """A number beyond the range of a float."""


def parse_finite(digits):
    """A `parse_float` for JSON that rejects infinities."""
    value = float(digits)
    if value - value != 0:
        raise BeyondFloat("a number beyond the range of a float")
    return value


def reject_constant(name):
    """A `parse_constant` for JSON that rejects NaN and the infinities."""
    raise ValueError(name)


# Created once: json.loads would create a decoder for each call.
_decode = json.JSONDecoder(parse_int=_safe_integer, parse_float=parse_finite, parse_constant=reject_constant).decode
