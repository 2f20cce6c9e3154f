"""Which descriptors the broker waits for, and what it does when one is ready."""

import select


class Watcher:
    """A poll set with a handler for each descriptor."""

    def __init__(self):
        self._poll = select.poll()
        self._handlers = {}
        self._masks = {}

    def reading(self, fd, handler):
        """Calls `handler(event)` when there is something to read, or the end."""
        self._set(fd, select.POLLIN, handler)

    def writing(self, fd, handler):
        """Calls `handler(event)` when there is room to write."""
        self._set(fd, select.POLLOUT, handler)

    def both(self, fd, handler):
        """Calls `handler(event)` for either."""
        self._set(fd, select.POLLIN | select.POLLOUT, handler)

    def forget(self, fd):
        """Waits no longer for a descriptor; one that is not watched is no mistake."""
        if fd in self._masks:
            self._poll.unregister(fd)
            del self._masks[fd], self._handlers[fd]

    def wait(self, milliseconds):
        """Waits once and calls the handlers of what is ready. None waits for ever."""
        for fd, event in self._poll.poll(milliseconds):
            handler = self._handlers.get(fd)
            if handler is not None:  # an earlier handler of this round may have taken it out
                handler(event)

    def _set(self, fd, mask, handler):
        if self._masks.get(fd) != mask:
            self._poll.register(fd, mask)
            self._masks[fd] = mask
        self._handlers[fd] = handler


def wants_write(event):
    """Whether there is room to write."""
    return bool(event & select.POLLOUT)
