"""Waits for descriptors, each with a handler."""

import select


class Watcher:
    """A poll set with a handler for each descriptor."""

    def __init__(self):
        self._poll = select.poll()
        self._handlers = {}
        self._masks = {}
        self._new = set()  # descriptors that are watched since the current round

    def watch_read(self, fd, handler):
        """Calls `handler(event)` when the descriptor is readable or closed."""
        self._set(fd, select.POLLIN, handler)

    def watch_write(self, fd, handler):
        """Calls `handler(event)` when the descriptor is writable."""
        self._set(fd, select.POLLOUT, handler)

    def watch_both(self, fd, handler):
        """Calls `handler(event)` when the descriptor is readable or writable."""
        self._set(fd, select.POLLIN | select.POLLOUT, handler)

    def forget(self, fd):
        """Stops watching a descriptor. Does nothing if it is not watched."""
        if fd in self._masks:
            self._poll.unregister(fd)
            del self._masks[fd], self._handlers[fd]

    def wait(self, milliseconds):
        """Waits once, and calls the handlers of ready descriptors. None waits without a limit."""
        ready = self._poll.poll(milliseconds)
        self._new.clear()
        for fd, event in ready:
            handler = self._handlers.get(fd)
            # An earlier handler of this round may have closed it, and a new descriptor may have its number.
            if handler is None or fd in self._new:
                continue
            if event & select.POLLNVAL:
                self.forget(fd)  # it was closed; poll would return at once from now on
            else:
                handler(event)

    def _set(self, fd, mask, handler):
        if fd not in self._masks:
            self._new.add(fd)
        if self._masks.get(fd) != mask:
            self._poll.register(fd, mask)
            self._masks[fd] = mask
        self._handlers[fd] = handler


def is_writable(event):
    """True if the descriptor is writable."""
    return bool(event & select.POLLOUT)
