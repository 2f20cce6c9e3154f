import { type FreshCase, LINUX } from '../fresh-case.ts'

const LOOPBACK = 'a network namespace with loopback alone'
const FAMILIES = 'sockets of any family but `AF_UNIX`, `AF_INET` and `AF_INET6` are refused'

/** Attacks on the network and on sockets of the host. */
export const NETWORK: readonly FreshCase[] = [
  {
    id: 'NET-01',
    claim: FAMILIES,
    title: 'asks for sockets and pairs of every family and kind',
    engines: LINUX,
    script: String.raw`
made, pairs = set(), set()
for family in range(0, 80):
    for kind in (1, 2, 3, 4, 5, 6, 10):
        for protocol in (0, 1, 9, 12, 15, 16):
            if call((41, 198), family, kind, protocol) not in ("EAFNOSUPPORT",):
                made.add(family)
        if tried(socket.socketpair, family, kind) == "done":
            pairs.add(family)
emit_result([sorted(made), sorted(pairs)])
`,
    expected: { status: 'completed', data: [[1, 2, 10], [1]] },
  },
  {
    id: 'NET-02',
    claim: LOOPBACK,
    title: 'changes interfaces, addresses and routes, and sniffs',
    engines: LINUX,
    script: String.raw`
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = b"lo".ljust(40, b"\0")
asked = [0x8914, 0x8916, 0x891C, 0x8924, 0x8922, 0x890B, 0x8946, 0x89F1, 0x89A0, 0x8953]
interfaces = sorted(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line)
emit_result([interfaces, sorted({tried(fcntl.ioctl, s, number, name) for number in asked} - {"EOPNOTSUPP", "ENOTSUP", "ENODEV", "EINVAL", "ENOTTY", "EFAULT"}), tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1), tried(socket.socket, socket.AF_INET6, socket.SOCK_RAW, 58), len(open("/proc/net/route").read().splitlines())])
`,
    expected: { status: 'completed', data: [['lo'], ['EPERM'], 'EPERM', 'EPERM', 1] },
  },
  {
    id: 'NET-03',
    claim: LOOPBACK,
    title: 'looks for the host on loopback, its address, mapped and any-addresses, by TCP, UDP and fast open',
    engines: LINUX,
    costsSandbox: true,
    script: String.raw`
port, udp = @@HOST_LISTENER_PORT@@, @@HOST_UDP_ECHO_PORT@@
came = []
for host in ("127.0.0.1", "0.0.0.0", "127.1.2.3", "::1", "::", "::ffff:127.0.0.1", "::ffff:@@HOST_IP@@", "@@HOST_IP@@", "169.254.169.254", "fe80::1%lo", "255.255.255.255", "ff02::1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family)
    s.settimeout(1)
    came.append(tried(s.connect, (host, port)))
    f = socket.socket(family)
    came.append(tried(f.sendto, b"x", 0x20000000, (host, port)))
    u = socket.socket(family, socket.SOCK_DGRAM)
    u.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    u.settimeout(0.05)
    tried(u.sendto, b"x", (host, udp))
    came.append(tried(u.recv, 10))
emit_result([one for one in came if one not in ("ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "TimeoutError", "None", "EACCES", "EINVAL", "gaierror") and "timed out" not in str(one)])
`,
    expected: { status: 'completed', data: [] },
  },
  {
    id: 'NET-04',
    claim: 'no directory with a host socket is mounted',
    title: 'connects to an abstract and to a named socket of the host, and looks for others in /proc/net/unix',
    engines: LINUX,
    script: String.raw`
names = ["\0@@ABSTRACT_NAME@@", "/tmp/@@HOST_SOCKET_NAME@@", "/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "/tmp/.X11-unix/X0", "\0/tmp/.X11-unix/X0", "/proc/1/root/run/docker.sock"]
came = [tried(socket.socket(socket.AF_UNIX).connect, name) for name in names]
listed = [line.split()[7] for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) > 7]
emit_result([came, listed])
`,
    expected: {
      status: 'completed',
      data: [['ECONNREFUSED', ...Array<unknown>(6).fill('ENOENT'), 'ECONNREFUSED', 'EACCES'].map(String), []],
    },
  },
  {
    id: 'NET-05',
    claim: LOOPBACK,
    title:
      'asks for a mark, a forced buffer, tables of the packet filter, a transparent source, and a filter of its own',
    engines: LINUX,
    script: String.raw`
s = socket.socket()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
emit_result([
    tried(s.setsockopt, socket.SOL_SOCKET, 36, 1),
    tried(s.setsockopt, socket.SOL_SOCKET, 33, 1 << 28) in ("EPERM", "done"),
    tried(s.setsockopt, 0, 64, b"\0" * 40),
    tried(s.setsockopt, 41, 64, b"\0" * 40),
    tried(s.setsockopt, 0, 19, 1),
    tried(u.setsockopt, socket.SOL_SOCKET, 26, struct.pack("HL", 1, 0)),
])
`,
    expected: { status: 'completed', data: ['EPERM', true, 'EPERM', 'ENOPROTOOPT', 'EPERM', 'EPERM'] },
  },
  {
    id: 'NET-06',
    claim: 'sockets of any protocol but TCP, UDP and ICMP are refused',
    title: 'asks for every type and protocol of an internet socket, for which the kernel would load a module',
    engines: LINUX,
    script: String.raw`
came, refused = set(), {1: "EPROTONOSUPPORT", 2: "EPROTONOSUPPORT", 3: "EPERM"}
for family in (2, 10):
    for kind in range(1, 11):
        for protocol in range(300):
            one = call((41, 198), family, kind, protocol)
            if isinstance(one, int):
                os.close(one)
            if one != refused.get(kind, "ESOCKTNOSUPPORT"):
                came.add((family, kind, protocol))
emit_result([sorted(came), call((41, 198), 1, 1, 1) != "EPROTONOSUPPORT"])
`,
    expected: {
      status: 'completed',
      data: [
        [
          [2, 1, 0],
          [2, 1, 6],
          [2, 2, 0],
          [2, 2, 1],
          [2, 2, 17],
          [10, 1, 0],
          [10, 1, 6],
          [10, 2, 0],
          [10, 2, 17],
          [10, 2, 58],
        ],
        true,
      ],
    },
  },
  {
    id: 'NET-07',
    claim: 'loaded modules | nothing: the system calls are refused',
    title: 'asks sockets for bridges, VLANs and DLCIs, and a terminal for other line disciplines',
    engines: LINUX,
    script: String.raw`
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked = (0x8940, 0x8941, 0x89A0, 0x89A1, 0x8982, 0x8983, 0x8980, 0x8981)
came = {tried(fcntl.ioctl, u, number, bytes(256)) for number in asked}
terminal = os.openpty()[1]
came |= {tried(fcntl.ioctl, terminal, 0x5423, struct.pack("i", number)) for number in range(31)}
emit_result(sorted(came))
`,
    expected: { status: 'completed', data: ['EPERM'] },
  },
  {
    id: 'NET-08',
    claim: 'loaded modules | nothing: the system calls are refused',
    title: 'gives TCP keys and protocols above it, for which the kernel loads ciphers and digests',
    engines: LINUX,
    script: String.raw`
def asked(family, number, value):
    one = socket.socket(family)
    try:
        return tried(one.setsockopt, socket.IPPROTO_TCP, number, value)
    finally:
        one.close()
peer = struct.pack("HH4s", 2, 0, bytes([127, 0, 0, 1])).ljust(128, b"\0")
digest = peer + struct.pack("BBHIB3x", 0, 0, 4, 0, 0) + b"word".ljust(80, b"\0")
names = [b"hmac(sha1)", b"cmac(aes)", b"anything"]
keys = [peer + name.ljust(64, b"\0") + bytes(256) for name in names]
values = [(14, digest), (32, digest), (31, b"tls"), (31, b"smc"), *((38, key) for key in keys)]
emit_result(sorted({asked(family, *one) for family in (socket.AF_INET, socket.AF_INET6) for one in values}))
`,
    expected: { status: 'completed', data: ['EPERM'] },
  },
]
