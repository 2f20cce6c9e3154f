"""Tells what a pod reaches over its network: runs beside a sandbox before any script, and in pods that no policy isolates.

`listen PORT SECONDS` answers everybody by TCP and UDP. `try TARGETS SECONDS` writes one line of JSON: what came of each target, and
what this pod knows of its surroundings. A target is [protocol, address, port].
"""

import errno
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
PROTOCOLS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM, "icmp": socket.SOCK_DGRAM}


def listen(port, seconds):
    """Accepts connections, and sends datagrams back."""
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
                    one.sendto(*one.recvfrom(MAX_BYTES))
            except OSError:
                pass


def begin(protocol, address, port):
    """Starts an attempt. Returns its socket, or the name of the error."""
    try:
        family, _, _, _, place = socket.getaddrinfo(address, port, flags=socket.AI_NUMERICHOST)[0]
        number = 0
        if protocol == "icmp":
            number = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
        one = socket.socket(family, PROTOCOLS[protocol], number)
        one.setblocking(False)
        try:
            one.connect(place)
        except BlockingIOError:
            pass
        if protocol == "icmp":
            one.send(struct.pack("!BBHHH", 8 if family == socket.AF_INET else 128, 0, 0, 0, 1))
        elif protocol == "udp":
            one.send(b"?")
        return one
    except OSError as error:
        return name_of(error.errno)


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
    while open_sockets and (left := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            place, one = open_sockets.pop(fd)
            poll.unregister(fd)
            outcomes[place] = finish(targets[place][0], one)
            one.close()
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


def name_servers():
    lines = [line.split() for line in read_lines("/etc/resolv.conf")]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def main():
    task, given, seconds = sys.argv[1:]
    if task == "listen":
        listen(int(given), float(seconds))
        return
    targets, own = json.loads(given), gateways()
    outcomes = try_all(targets + [["tcp", address, KUBELET_PORT] for address in own], float(seconds))
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    found = {
        "outcomes": outcomes[: len(targets)],
        "gateways": list(zip(own, outcomes[len(targets) :])),
        "service": [host, int(port)] if host and port.isdigit() else None,
        "name_servers": name_servers(),
    }
    print(json.dumps(found), flush=True)


main()
