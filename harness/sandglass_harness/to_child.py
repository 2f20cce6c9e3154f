"""What goes to the script's process: its request, then the answers to its tool calls."""

import json
import re
import struct

from .wire import HIGH_WATER, Outbox, encode

MAX_ANSWERS = 64 << 20  # bytes of answers that a script does not read
_ANSWER_ID = re.compile(rb'"id":("(?:[^"\\]|\\.)*")')


class ToChild(Outbox):
    """What the script's process has not taken yet; when it is gone, so is that."""

    def flush(self):
        """Writes what it takes. True when nothing is left."""
        try:
            return super().flush()
        except OSError:
            self.clear()
            return True

    def put_request(self, request):
        """Its one request, or the next one of a process that checks."""
        self._put_message(json.dumps(request).encode())

    def put_answer(self, line):
        """The answer to a tool call, as it came: it may be large, and is the host's own."""
        self._put_message(_too_large(line) if self.size + len(line) > MAX_ANSWERS else line)

    @property
    def overflows(self):
        """Whether the script calls and calls, and reads nothing. One that gave up waiting for a few answers does not."""
        return self.size > MAX_ANSWERS + HIGH_WATER

    def _put_message(self, data):
        self.put(struct.pack("=I", len(data)) + data)


def _too_large(line):
    """In place of an answer that there is no room for. The host writes an answer's id before all else."""
    found = _ANSWER_ID.search(line, 0, 1024)
    number = json.loads(found[1]) if found else ""
    error = {"code": "result_too_large", "message": "the script has too many answers that it did not read yet"}
    return encode({"type": "tool_result", "id": number, "error": error})
