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
# There the kernel itself looks for routers, makes sure that its addresses are nobody else's, and reports its groups: in the first seconds of
# an interface, and when a router asks. No script can: it has no raw sockets and joins no groups (script/seccomp.py). A script can have
# the kernel look for a gateway, by connecting a socket: so each address that was tentative at first may be announced once, and no more.
_SOLICITS = "Icmp6OutNeighborSolicits"
_TENTATIVE = 0x40  # IFA_F_TENTATIVE of linux/if_addr.h
_ANNOUNCEMENTS = (
    "Icmp6OutRouterSolicits",
    _SOLICITS,
    "Icmp6OutMLDv2Reports",
    "Icmp6OutGroupMembResponses",
    "Icmp6OutGroupMembReductions",
)
_TYPES = tuple(f"Icmp6OutType{number}" for number in (131, 132, 133, 135, 143))
# Each of these grows by one for each announcement.
_PACKETS = ("Icmp6OutMsgs", "Ip6OutRequests", "Ip6OutTransmits", "Ip6OutMcastPkts", "dev:OutPackets")
_ETHERNET_BYTES = 14
# The kernel lists these only once they are not zero.
_LISTED_LATE = ("Icmp6InType", "Icmp6OutType", "IcmpMsg:")


class NetworkCounters:
    """The counters before the first run."""

    def __init__(self, read=None, tentative=None):
        opened = [integrity.open_proc(name) for name in _FILES] if read is None else []
        self._files = [fd for fd in opened if fd is not None]  # a kernel without IPv6 lacks the last one
        self._read = read or self._read_files
        self._tentative = _count_tentative() if tentative is None else tentative
        self._normal = self._read()

    def are_as_before(self):
        """True if no run has used or tried to use the network. Only the end of the sandbox resets the counters."""
        now = self._read()
        return now == self._normal or _are_others(self._normal, now, self._tentative)

    def _read_files(self):
        return [os.pread(fd, _MAX_BYTES, 0) for fd in self._files]


def _count_tentative():
    """Returns the number of IPv6 addresses that the kernel has yet to announce."""
    fd = integrity.open_proc("net/if_inet6")
    if fd is None:
        return 0
    try:
        lines = os.pread(fd, _MAX_BYTES, 0).splitlines()
    finally:
        os.close(fd)
    return sum(int(line.split()[4], 16) & _TENTATIVE != 0 for line in lines)


def _are_others(before, now, tentative):
    """True if others, or the kernel, account for every difference. Never in a namespace that has loopback alone."""
    try:
        old, new = _parse(before), _parse(now)
    except (ValueError, IndexError):
        return False
    others = old.keys() ^ new.keys()
    if not any(name.startswith("dev:") for name in old) or not all(name.startswith(_LISTED_LATE) for name in others):
        return False
    more = {name: new.get(name, 0) - old.get(name, 0) for name in old.keys() | new.keys()}
    sent = {name: number for name, number in more.items() if not name.startswith(_RECEIVED)}
    if sent.get(_SOLICITS, 0) > tentative:
        return False
    count = sum(sent.pop(name, 0) for name in _ANNOUNCEMENTS)
    octets = sent.pop("Ip6OutOctets", 0) if count else 0
    expected = dict.fromkeys(_PACKETS, count)
    expected |= {"Ip6OutMcastOctets": octets, "dev:OutBytes": octets + count * _ETHERNET_BYTES}
    if sum(sent.pop(name, 0) for name in _TYPES) != count:
        return False
    return all(number == expected.get(name, 0) for name, number in sent.items())


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
