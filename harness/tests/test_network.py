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
Icmp6OutMsgs\t{messages}
Icmp6OutRouterSolicits\t{solicits}
Icmp6OutMLDv2Reports\t{reports}
"""
START = dict(
    zip(
        ("lo", "got", "sent", "packets", "errors", "ip_in", "ip_out", "udp", "requests", "octets", "messages", "solicits", "reports"),
        (0, 1000, 472, 6, 0, 3, 4, 0, 5, 360, 5, 1, 4),
    )
)
SOLICITED = {"sent": 70, "packets": 1, "requests": 1, "octets": 56, "messages": 1, "solicits": 1}


def files(has_interface, **more):
    values = {name: value + more.get(name, 0) for name, value in START.items()}
    dev = DEV + (ETH if has_interface else "")
    return [text.format(**values).encode() for text in (dev, SNMP, SNMP6)]


class NetworkTest(unittest.TestCase):
    def are_as_before(self, has_interface=True, **more):
        answers = [files(has_interface), files(has_interface, **more)]
        return NetworkCounters(lambda: answers.pop(0)).are_as_before()

    def test_equal_counters_are_as_before(self):
        self.assertTrue(self.are_as_before())
        self.assertTrue(self.are_as_before(has_interface=False))

    def test_beside_loopback_others_and_the_kernel_are_no_run(self):
        self.assertTrue(self.are_as_before(got=70, ip_in=1))
        self.assertTrue(self.are_as_before(**SOLICITED))
        self.assertTrue(self.are_as_before(**{name: 3 * value for name, value in SOLICITED.items()}, got=5))

    def test_with_loopback_alone_every_difference_is_a_run(self):
        self.assertFalse(self.are_as_before(has_interface=False, got=70))
        self.assertFalse(self.are_as_before(has_interface=False, **SOLICITED))

    def test_whatever_a_run_sends_or_tries_to_send_is_seen(self):
        for name in ("lo", "sent", "packets", "errors", "ip_out", "udp", "requests", "octets", "messages", "reports"):
            with self.subTest(name):
                self.assertFalse(self.are_as_before(**{name: 1}))
                self.assertFalse(self.are_as_before(**SOLICITED | {name: SOLICITED.get(name, 0) + 1}))

    def test_an_interface_that_comes_is_a_difference(self):
        answers = [files(False), files(True)]
        self.assertFalse(NetworkCounters(lambda: answers.pop(0)).are_as_before())


if __name__ == "__main__":
    unittest.main()
