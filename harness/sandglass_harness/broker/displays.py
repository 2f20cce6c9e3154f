"""The displays of a run: MIME bundles from a hostile process, validated and bounded before they are forwarded."""

import re

from ..caps import (
    MAX_DISPLAY_BYTES,
    MAX_DISPLAY_TYPES,
    MAX_DISPLAYS,
    MAX_DISPLAYS_BYTES,
    MAX_LEFT_OUT,
    MAX_MIME_TYPE,
)

_MIME_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_QUOTED = re.compile(r"['\"][ -~]*", re.ASCII)


class Displays:
    """Counts the displays of one run and their bytes."""

    def __init__(self):
        self.are_over = False
        self._count = self._bytes = 0

    def shape(self, frame):
        """Returns the valid fields of a display. Raises ValueError for a frame that is not a display."""
        data, left_out = frame.get("data"), frame.get("left_out", [])
        if frame.get("kind") not in ("result", "display") or not isinstance(data, dict) or not isinstance(left_out, list):
            raise ValueError("not a display")
        if not 0 < len(data) <= MAX_DISPLAY_TYPES or len(left_out) > MAX_LEFT_OUT:
            raise ValueError("not a display")
        if not all(_is_mime_type(name) for name in data):
            raise ValueError("not a MIME type")
        if not all(_is_mime_type(name) or _is_quoted(name) for name in left_out):
            raise ValueError("neither a MIME type nor a quoted name")
        if not all(isinstance(content, str) for content in data.values()):
            raise ValueError("the content of a display is not text")
        return {"type": "display", "kind": frame["kind"], "data": data, "left_out": left_out}

    def admit(self, size):
        """Counts a display of `size` bytes. Returns False if there are too many, or if it is too large."""
        too_many = self._count >= MAX_DISPLAYS or self._bytes + size > MAX_DISPLAYS_BYTES
        if too_many or size > MAX_DISPLAY_BYTES + _HEAD_BYTES:
            self.are_over = True
            return False
        self._count += 1
        self._bytes += size
        return True

    @property
    def warnings(self):
        """A list with the warning about omitted displays; empty if there are none."""
        if not self.are_over:
            return []
        limits = f"{MAX_DISPLAYS} displays and {MAX_DISPLAYS_BYTES >> 20} MiB together"
        return [{"code": "displays_left_out", "message": f"displays were left out: a run shows at most {limits}"}]


_HEAD_BYTES = 4 << 10  # for the run's id and the position in the output


def _is_mime_type(name):
    return isinstance(name, str) and len(name) <= MAX_MIME_TYPE and _MIME_TYPE.fullmatch(name) is not None


def _is_quoted(name):
    return isinstance(name, str) and len(name) <= MAX_MIME_TYPE and _QUOTED.fullmatch(name) is not None
