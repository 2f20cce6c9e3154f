"""The counters of the network namespace. They outlive a run, and a script can read them."""

import os

from . import integrity

# Packets of loopback, and counters that grow without a packet, as for an address without a route. All other traces of a
# connection, such as TIME_WAIT, come with packets. Reading /proc/net/tcp itself would take milliseconds.
_FILES = ("net/dev", "net/snmp", "net/snmp6")
_MAX_BYTES = 1 << 16

# A namespace with another interface, as that of a pod, also counts what others send to it. Nothing that a run does changes these
# counters alone: its own packets are counted on their way out, or by loopback.
_RECEIVED = ("Ip:In", "Icmp:In", "IcmpMsg:In", "Ip6In", "Icmp6In", "dev:In")
# There the kernel itself looks for routers from time to time. No script can: it has no raw sockets.
_SOLICITS = "Icmp6OutRouterSolicits"
_OF_A_SOLICIT = {
    _SOLICITS: 1,
    "Icmp6OutType133": 1,
    "Icmp6OutMsgs": 1,
    "Ip6OutRequests": 1,
    "Ip6OutTransmits": 1,
    "Ip6OutMcastPkts": 1,
    "Ip6OutOctets": 56,
    "Ip6OutMcastOctets": 56,
    "dev:OutPackets": 1,
    "dev:OutBytes": 70,
}


class NetworkCounters:
    """The counters before the first run."""

    def __init__(self, read=None):
        opened = [integrity.open_proc(name) for name in _FILES] if read is None else []
        self._files = [fd for fd in opened if fd is not None]  # a kernel without IPv6 lacks the last one
        self._read = read or self._read_files
        self._normal = self._read()

    def are_as_before(self):
        """True if no run has used or tried to use the network. Only the end of the sandbox resets the counters."""
        now = self._read()
        return now == self._normal or _are_others(self._normal, now)

    def _read_files(self):
        return [os.pread(fd, _MAX_BYTES, 0) for fd in self._files]


def _are_others(before, now):
    """True if others, or the kernel, account for every difference. Never in a namespace that has loopback alone."""
    try:
        old, new = _parse(before), _parse(now)
    except (ValueError, IndexError):
        return False
    if old.keys() != new.keys() or not any(name.startswith("dev:") for name in old):
        return False
    solicits = new.get(_SOLICITS, 0) - old.get(_SOLICITS, 0)
    return all(
        new[name] - old[name] == solicits * _OF_A_SOLICIT.get(name, 0) for name in old if not name.startswith(_RECEIVED)
    )


def _parse(texts):
    """Returns the counters by name. `dev:` has the sums of all interfaces but loopback, whose line is taken whole."""
    dev, snmp, *rest = (text.decode() for text in texts)
    found = {}
    for line in dev.splitlines()[2:]:
        name, _, values = line.partition(":")
        numbers = [int(value) for value in values.split()]
        if name.strip() == "lo":
            found.update({f"lo:{place}": number for place, number in enumerate(numbers)})
            continue
        sums = {"dev:In": sum(numbers[:8]), "dev:OutBytes": numbers[8], "dev:OutPackets": numbers[9]}
        sums["dev:OutOther"] = sum(numbers[10:])
        for key, number in sums.items():
            found[key] = found.get(key, 0) + number
    lines = snmp.splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        head, *names = names.split()
        found.update({head + name: int(value) for name, value in zip(names, values.split()[1:])})
    for line in rest[0].splitlines() if rest else ():
        name, value = line.split()
        found[name] = int(value)
    return found
