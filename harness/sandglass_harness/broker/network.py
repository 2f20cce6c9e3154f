"""The counters of the network namespace. They outlive a run, and a script can read them."""

import os

from . import integrity

# Packets of loopback, and counters that grow without a packet, as for an address without a route. All other traces of a
# connection, such as TIME_WAIT, come with packets. Reading /proc/net/tcp itself would take milliseconds.
_FILES = ("net/dev", "net/snmp", "net/snmp6")
_MAX_BYTES = 1 << 16


class NetworkCounters:
    """The counters before the first run."""

    def __init__(self):
        opened = [integrity.open_proc(name) for name in _FILES]
        self._files = [fd for fd in opened if fd is not None]  # a kernel without IPv6 lacks the last one
        self._normal = self._read()

    def are_as_before(self):
        """True if no run has used or tried to use the network. Only the end of the sandbox resets the counters."""
        return self._read() == self._normal

    def _read(self):
        return [os.pread(fd, _MAX_BYTES, 0) for fd in self._files]
