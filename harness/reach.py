"""Reports which targets a pod can reach. It runs beside a sandbox before any script, and in pods that no policy isolates.

`listen PORT SECONDS` accepts connections by TCP, and answers a question by UDP. `try TARGETS SECONDS` writes one line of JSON: the
outcome of each target, and the surroundings of this pod. A target is [protocol, address, port]; an address of the link needs no scope.
"""

import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time

KUBELET_PORT = 10250
MAX_BYTES = 512
QUESTION, ANSWER = b"?", b"!"
DNS_PORT = 53
# The name servers of the root, which every name server answers or refuses.
DNS_QUERY = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + b"\0" + struct.pack("!2H", 2, 1)
# The pause before a datagram is sent again: the first one may be lost while its neighbour is looked for.
REPEAT_SEC = 0.5
# The kernel takes 1 to 2 s to make sure that nobody else on the link has an address, and does not use it before.
SETTLE_SEC = 3
TENTATIVE = 0x40
SIOCGIFFLAGS, IFF_UP, IFF_LOOPBACK = 0x8913, 1, 8
PROTOCOLS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM, "icmp": socket.SOCK_DGRAM}


def listen(port, seconds):
    """Accepts connections, and answers questions. An answer is no question, so nobody is kept busy with a forged sender."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # without a handler PID 1 would not get it
    deadline = time.monotonic() + seconds
    poll, open_sockets = select.poll(), {}
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                one = socket.socket(family, kind)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind((address, port))
            except OSError:  # a pod without this version of IP
                continue
            if kind == socket.SOCK_STREAM:
                one.listen()
            one.setblocking(False)
            poll.register(one, select.POLLIN)
            open_sockets[one.fileno()] = one
    while time.monotonic() < deadline:
        for fd, _ in poll.poll(1000):
            one = open_sockets[fd]
            try:
                if one.type == socket.SOCK_STREAM:
                    one.accept()[0].close()
                else:
                    text, sender = one.recvfrom(MAX_BYTES)
                    if text == QUESTION:
                        one.sendto(ANSWER, sender)
            except OSError:
                pass


def begin(protocol, address, port):
    """Starts an attempt. Returns its socket, or the name of the error."""
    try:
        family, _, _, _, place = socket.getaddrinfo(scoped(address), port, flags=socket.AI_NUMERICHOST)[0]
        number = 0
        if protocol == "icmp":
            number = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
        one = socket.socket(family, PROTOCOLS[protocol], number)
        one.setblocking(False)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        try:
            one.connect(place)
        except BlockingIOError:
            pass
        ask(protocol, one)
        return one
    except OSError as error:
        return name_of(error.errno)


def ask(protocol, one):
    """Sends what a target answers, if a connection is not all that is tried."""
    if protocol == "icmp":
        one.send(struct.pack("!BBHHH", 8 if one.family == socket.AF_INET else 128, 0, 0, 0, 1))
    elif protocol == "udp":
        one.send(DNS_QUERY if one.getpeername()[1] == DNS_PORT else QUESTION)


def scoped(address):
    """Adds the interface to an address that is valid on one link."""
    is_of_link = address[:3] in ("fe8", "fe9", "fea", "feb") or address.startswith("ff02:")
    return f"{address}%{(interfaces() or ['lo'])[0]}" if is_of_link and "%" not in address else address


def name_of(number):
    if number == errno.ECONNREFUSED:
        return "refused"
    return errno.errorcode.get(number, "error")


def finish(protocol, one):
    """Returns what came of an attempt whose socket has something to say."""
    problem = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if problem == 0 and protocol != "tcp":
        try:
            one.recv(MAX_BYTES)
        except OSError as error:
            problem = error.errno
    return "connected" if problem == 0 else name_of(problem)


def try_all(targets, seconds):
    """Attempts all at once. What does not answer in time is `silent`."""
    outcomes, poll, open_sockets = [None] * len(targets), select.poll(), {}
    for place, target in enumerate(targets):
        one = begin(*target)
        if isinstance(one, str):
            outcomes[place] = one
            continue
        open_sockets[one.fileno()] = (place, one)
        poll.register(one, select.POLLOUT if target[0] == "tcp" else select.POLLIN)
    deadline = time.monotonic() + seconds
    repeat = time.monotonic() + REPEAT_SEC
    while open_sockets and (now := time.monotonic()) < deadline:
        for fd, _ in poll.poll(max(0, min(deadline, repeat) - now) * 1000):
            place, one = open_sockets.pop(fd)
            poll.unregister(fd)
            outcomes[place] = finish(targets[place][0], one)
            one.close()
        if time.monotonic() >= repeat:
            repeat += REPEAT_SEC
            for fd, (place, one) in list(open_sockets.items()):
                try:
                    ask(targets[place][0], one)
                except OSError as error:
                    outcomes[place] = name_of(error.errno)
                    poll.unregister(fd)
                    open_sockets.pop(fd)[1].close()
    for _, one in open_sockets.values():
        one.close()
    return [outcome or "silent" for outcome in outcomes]


def read_lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []


def gateways():
    """The next hops of all routes."""
    found = set()
    for line in read_lines("/proc/net/route")[1:]:
        number = int(line.split()[2], 16)
        if number:
            found.add(socket.inet_ntop(socket.AF_INET, number.to_bytes(4, sys.byteorder)))
    for line in read_lines("/proc/net/ipv6_route"):
        fields = line.split()
        if int(fields[4], 16) and fields[-1] != "lo":
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[4]))
            found.add(f"{address}%{fields[-1]}" if address.startswith("fe80") else address)
    return sorted(found)


def interfaces():
    """The interfaces that are up, beside the loopback."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for _, name in socket.if_nameindex():
            answer = fcntl.ioctl(one, SIOCGIFFLAGS, struct.pack("16s24x", name.encode()))
            (flags,) = struct.unpack_from("H", answer, 16)
            if flags & IFF_UP and not flags & IFF_LOOPBACK:
                found.append(name)
    return found


def own_lines():
    """The lines of the kernel about IPv6 addresses, but for those of the loopback."""
    lines = [line.split() for line in read_lines("/proc/net/if_inet6")]
    return [fields for fields in lines if fields[5] != "lo"]


def own_addresses():
    """All IPv6 addresses of this pod. Kubernetes knows only those that it was told."""
    return sorted({socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0])) for fields in own_lines()})


def settle():
    """Waits until the addresses of this pod are in use, for a bounded time."""
    deadline = time.monotonic() + SETTLE_SEC
    while any(int(fields[4], 16) & TENTATIVE for fields in own_lines()) and time.monotonic() < deadline:
        time.sleep(0.02)


def name_servers():
    lines = [line.split() for line in read_lines("/etc/resolv.conf")]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def main():
    task, given, seconds = sys.argv[1:]
    if task == "listen":
        listen(int(given), float(seconds))
        return
    settle()
    targets, own = json.loads(given), gateways()
    outcomes = try_all(targets + [["tcp", address, KUBELET_PORT] for address in own], float(seconds))
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    found = {
        "outcomes": outcomes[: len(targets)],
        "gateways": list(zip(own, outcomes[len(targets) :])),
        "service": [host, int(port)] if host and port.isdigit() else None,
        "name_servers": name_servers(),
        "interfaces": interfaces(),
        "addresses": own_addresses(),
    }
    print(json.dumps(found), flush=True)


main()
