"""Messages to the script's process: its request, then the answers to its tool calls."""

import json
import re
import struct

from ..caps import HIGH_WATER_BYTES, MAX_UNREAD_ANSWER_BYTES
from ..wire import encode
from .channel import Outbox

_ANSWER_ID = re.compile(rb'"id":("(?:[^"\\]|\\.)*")')


class ToChild(Outbox):
    """Queues messages until the script's process reads them. Drops them when it ends."""

    def flush(self):
        """Writes as much as the process accepts. Returns True if nothing is left."""
        try:
            return super().flush()
        except OSError:
            self.clear()
            return True

    def put_request(self, request, body=None):
        """Queues a request. Only a process that checks scripts gets more than one. `body` holds the remaining fields as chunks of
        JSON. They are queued without copying, because a body can be as large as half of the sandbox's memory."""
        if body is None:
            self._put_message(json.dumps(request).encode())
            return
        self._put_message(json.dumps({**request, "in_parts": True}).encode())
        self.put(struct.pack("=I", sum(map(len, body))))
        for piece in body:
            self.put(piece)

    def put_answer(self, line):
        """Queues an answer to a tool call as the host sent it, or an error if too many bytes of answers are unread."""
        self._put_message(_error_for_too_large(line) if self.size + len(line) > MAX_UNREAD_ANSWER_BYTES else line)

    @property
    def overflows(self):
        """True if the script keeps calling without reading answers."""
        return self.size > MAX_UNREAD_ANSWER_BYTES + HIGH_WATER_BYTES

    def _put_message(self, data):
        self.put(struct.pack("=I", len(data)) + data)


def _error_for_too_large(line):
    """Creates an error in place of an answer that is too large to queue. In every answer, the id precedes the value."""
    found = _ANSWER_ID.search(line, 0, 1024)
    call_id = json.loads(found[1]) if found else ""
    message = f"the script has more than {MAX_UNREAD_ANSWER_BYTES} bytes of unread tool results: read earlier results before calling more tools"
    error = {"code": "result_too_large", "message": message}
    return encode({"type": "tool_result", "id": call_id, "error": error})
