import unittest

from sandglass_harness.broker.network import NetworkCounters

DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:{lo:8} 0 0 0 0 0 0 0 {lo} 0 0 0 0 0 0 0
"""
ETH = "  eth0:{got:8} 12 0 0 0 0 0 0 {sent} {packets} {errors} 0 0 0 0 0\n"
SNMP = """Ip: Forwarding DefaultTTL InReceives OutRequests OutNoRoutes
Ip: 2 64 {ip_in} {ip_out} 0
Udp: InDatagrams NoPorts OutDatagrams
Udp: 0 0 {udp}
"""
SNMP6 = """Ip6InReceives\t{got}
Ip6OutRequests\t{requests}
Ip6OutOctets\t{octets}
Ip6OutMcastOctets\t{octets}
Icmp6OutMsgs\t{messages}
Icmp6OutRouterSolicits\t{solicits}
Icmp6OutNeighborSolicits\t{neighbors}
Icmp6OutMLDv2Reports\t{reports}
Udp6OutDatagrams\t{udp6}
"""
# The kernel lists those that are not zero.
TYPES = {"solicits": 133, "neighbors": 135, "reports": 143, "echoes": 128}
START = dict(
    zip(
        ("lo", "got", "sent", "packets", "errors", "ip_in", "ip_out", "udp", "requests", "octets", "messages", "solicits", "neighbors", "reports", "udp6", "echoes"),
        (0, 1000, 472, 6, 0, 3, 4, 0, 5, 360, 5, 1, 0, 4, 0, 0),
    )
)  # fmt: skip


def announced(name, octets):
    """What one packet of the kernel about itself changes."""
    return {"sent": octets + 14, "packets": 1, "requests": 1, "octets": octets, "messages": 1, name: 1}


def together(*all_more):
    return {name: sum(more.get(name, 0) for more in all_more) for name in START}


ANNOUNCED = [announced("solicits", 56), announced("neighbors", 72), announced("reports", 76), announced("reports", 96)]


def files(has_interface, **more):
    values = {name: value + more.get(name, 0) for name, value in START.items()}
    dev = DEV + (ETH if has_interface else "")
    types = [f"Icmp6OutType{number}\t{values[name]}\n" for name, number in TYPES.items() if values[name]]
    return [text.format(**values).encode() for text in (dev, SNMP, SNMP6 + "".join(types))]


class NetworkTest(unittest.TestCase):
    def are_as_before(self, has_interface=True, tentative=3, **more):
        answers = [files(has_interface), files(has_interface, **more)]
        return NetworkCounters(lambda: answers.pop(0), tentative).are_as_before()

    def test_equal_counters_are_as_before(self):
        self.assertTrue(self.are_as_before())
        self.assertTrue(self.are_as_before(has_interface=False))

    def test_beside_loopback_others_and_the_kernel_are_no_run(self):
        self.assertTrue(self.are_as_before(got=70, ip_in=1))
        for more in ANNOUNCED:
            with self.subTest(more):
                self.assertTrue(self.are_as_before(**more))
                self.assertTrue(self.are_as_before(**together(more, more, more, {"got": 5})))
        self.assertTrue(self.are_as_before(**together(*ANNOUNCED)))

    def test_a_search_for_a_gateway_is_a_run(self):
        # Connecting a socket that sends nothing can start one. It looks like the announcement of an address.
        search = announced("neighbors", 72)
        self.assertFalse(self.are_as_before(tentative=0, **search))
        self.assertTrue(self.are_as_before(tentative=1, **search))
        self.assertFalse(self.are_as_before(tentative=1, **together(search, search)))

    def test_with_loopback_alone_every_difference_is_a_run(self):
        self.assertFalse(self.are_as_before(has_interface=False, got=70))
        for more in ANNOUNCED:
            with self.subTest(more):
                self.assertFalse(self.are_as_before(has_interface=False, **more))

    def test_whatever_a_run_sends_or_tries_to_send_is_seen(self):
        for name in START.keys() - {"got", "ip_in"}:
            with self.subTest(name):
                self.assertFalse(self.are_as_before(**{name: 1}))
                for more in ANNOUNCED:
                    self.assertFalse(self.are_as_before(**together(more, {name: 1})))

    def test_a_datagram_is_seen_beside_the_search_for_its_neighbor(self):
        datagram = {"udp6": 1, "requests": 1, "octets": 49}
        search = announced("neighbors", 72)
        self.assertFalse(self.are_as_before(**together(search, datagram)))
        self.assertFalse(self.are_as_before(**together(search, datagram, {"packets": 1, "sent": 63})))
        echo = announced("echoes", 72)
        self.assertFalse(self.are_as_before(**together(search, echo)))

    def test_an_interface_that_comes_is_a_difference(self):
        answers = [files(False), files(True)]
        self.assertFalse(NetworkCounters(lambda: answers.pop(0)).are_as_before())


if __name__ == "__main__":
    unittest.main()
