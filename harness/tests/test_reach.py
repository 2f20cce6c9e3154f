import json
import pathlib
import random
import socket
import subprocess
import sys
import unittest

PROGRAM = (pathlib.Path(__file__).parent.parent / "reach.py").read_text(encoding="utf-8")
# Whether a gateway of this machine answers decides how long the whole program takes.
WITHOUT_GATEWAYS = PROGRAM.removesuffix("main()\n") + "gateways = list\nmain()\n"


def free_port():
    """Returns a port for TCP and UDP that the kernel gives to nobody who asks for any."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            try:
                one.bind(("", port))
                other.bind(("", port))
            except OSError:
                continue
            return port


def start(*args, program=PROGRAM, env=None):
    command = [sys.executable, "-I", "-S", "-c", program, *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env or {})


def reach(targets, seconds="20"):
    """Tries targets that all answer, unless `seconds` are few."""
    with start("try", json.dumps(targets), seconds, program=WITHOUT_GATEWAYS) as process:
        return json.loads(process.stdout.read())


def look(**env):
    """Returns what the program tells of its surroundings."""
    with start("try", "[]", "0.3", env=env) as process:
        return json.loads(process.stdout.read())


class ReachTest(unittest.TestCase):
    def test_a_listener_is_reached_and_a_closed_port_refuses(self):
        port = free_port()
        listener = start("listen", str(port), "30")
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.addCleanup(listener.stdout.close)
        tcp = ["tcp", "127.0.0.1", port]
        while reach([tcp])["outcomes"] == ["refused"]:  # until it listens
            self.assertIsNone(listener.poll())
        with socket.socket() as deaf, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as engaged:
            deaf.bind(("127.0.0.1", 0))  # and does not listen
            engaged.bind(("127.0.0.1", 0))
            engaged.connect(("127.0.0.1", port))  # and takes nothing from others
            closed = [["tcp", *deaf.getsockname()], ["udp", *engaged.getsockname()]]
            outcomes = reach([tcp, ["udp", "127.0.0.1", port], *closed])["outcomes"]
        self.assertEqual(outcomes, ["connected", "connected", "refused", "refused"])

    def test_what_nobody_answers_is_silent(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute, socket.socket() as full:
            mute.bind(("127.0.0.1", 0))
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            with socket.create_connection(full.getsockname()):
                targets = [["udp", "127.0.0.1", mute.getsockname()[1]], ["tcp", *full.getsockname()]]
                self.assertEqual(reach(targets, "0.3")["outcomes"], ["silent", "silent"])

    def test_the_listener_answers_nothing_but_the_question(self):
        port = free_port()
        listener = start("listen", str(port), "30")
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.addCleanup(listener.stdout.close)
        udp = ["udp", "127.0.0.1", port]
        while reach([udp])["outcomes"] != ["connected"]:  # until it listens
            self.assertIsNone(listener.poll())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.settimeout(10)
            one.connect(("127.0.0.1", port))
            one.send(b"!")
            one.send(b"??")
            one.send(b"?")
            self.assertEqual(one.recv(9), b"!")
            one.settimeout(0.1)
            with self.assertRaises(TimeoutError):
                one.recv(9)

    def test_a_lost_datagram_is_sent_again(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
            late.bind(("127.0.0.1", 0))
            with start("try", json.dumps([["udp", *late.getsockname()]]), "5") as process:
                late.recvfrom(9)  # as if it were lost
                late.sendto(b"!", late.recvfrom(9)[1])
                self.assertEqual(json.loads(process.stdout.read())["outcomes"], ["connected"])

    def test_an_address_that_is_none_is_an_error(self):
        self.assertEqual(reach([["tcp", "nowhere", 1]])["outcomes"], ["error"])

    def test_it_tells_what_a_pod_knows(self):
        variables = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        before = None
        while before != (now := links_of_this_machine()):  # containers come and go
            before, found = now, look(**variables)
        self.assertEqual(found["service"], ["10.0.0.1", 443])
        self.assertEqual(found["outcomes"], [])
        self.assertIsInstance(found["name_servers"], list)
        self.assertTrue(all(isinstance(address, str) for address, _ in found["gateways"]))
        self.assertIsNone(look()["service"])
        addresses, interfaces = now
        self.assertEqual({socket.inet_pton(socket.AF_INET6, one).hex() for one in found["addresses"]}, addresses)
        self.assertEqual(sorted(found["interfaces"]), interfaces)


def links_of_this_machine():
    """Returns the IPv6 addresses of interfaces other than the loopback, and the names of those that are up."""
    lines = pathlib.Path("/proc/net/if_inet6").read_text(encoding="utf-8").splitlines()
    addresses = {line.split()[0] for line in lines if line.split()[5] != "lo"}
    return addresses, sorted(name for _, name in socket.if_nameindex() if flags_of(name) & 9 == 1)


def flags_of(interface):
    try:
        return int(pathlib.Path("/sys/class/net", interface, "flags").read_text(encoding="utf-8"), 16)
    except OSError:  # it is gone
        return 0


if __name__ == "__main__":
    unittest.main()
