import assert from 'node:assert/strict'
import { type FreshCase, LINUX } from '../fresh-case.ts'

const KILL = 'one `kill(-1)` pass in the kernel, PID 1 that reaps'
const WIPED = 'fresh process, wiped directories, with their modes, times and extended attributes'

const NETWORK = 'a run that moves a counter of its network ends the sandbox'

/** Python that reads the settings that a process inherits, for comparison with the next run. */
const STATE = String.raw`
status = {l.split(":")[0]: l.split(":")[1].strip() for l in open("/proc/self/status") if l.startswith(("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd", "Umask", "Cpus_allowed:", "CoreDumping", "THP", "Seccomp_filters"))}
limits = {name: list(resource.getrlimit(getattr(resource, name))) for name in dir(resource) if name.startswith("RLIMIT_")}
limits = {name: [str(one) for one in pair] for name, pair in limits.items()}
state = [status, limits, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), call((252, 31), 1, 0), open("/proc/self/oom_score_adj").read(), open("/proc/self/timerslack_ns").read(), open("/proc/self/personality").read(), open("/proc/self/coredump_filter").read(), os.getcwd(), socket.gethostname(), list(signal.getitimer(signal.ITIMER_VIRTUAL)), str(signal.getsignal(signal.SIGCHLD)), sorted(os.environ), call((157, 167), 3, 0, 0, 0, 0)]
`

const EMPTY = String.raw`
roots = ["/workspace", "/tmp", "/var/tmp", "/dev/shm"]
emit_result([[os.listdir(root), oct(os.stat(root).st_mode), os.listxattr(root), os.stat(root).st_mtime != 1] for root in roots])
`
const UNTOUCHED = ['0o40755', '0o41777', '0o41777', '0o41777'].map((mode) => [[], mode, [], true])

/** The counters of the network namespace, without constants (the default time to live). */
const COUNTED = String.raw`
counted = [line for line in open("/proc/net/dev") if line.strip().startswith("lo:") and set(line.split()[1:]) != {"0"}]
heads = {}
for line in open("/proc/net/snmp"):
    name, *values = line.split()
    for field, value in zip(heads.setdefault(name, values), values):
        if field != value and value not in ("0", "-1") and field not in ("Forwarding", "DefaultTTL", "RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn"):
            counted.append(field + " " + value)
if os.path.exists("/proc/net/snmp6"):
    counted += [line for line in open("/proc/net/snmp6") if line.split()[1] != "0"]
`

/** Attacks by processes and files that outlive a run. */
export const OUTLIVING: readonly FreshCase[] = [
  {
    id: 'LIVE-01',
    claim: KILL,
    title: 'leaves daemons of every kind: new sessions, ignored signals, stopped, forking, with threads, a program',
    engines: LINUX,
    script: String.raw`
import subprocess
kinds = []
def daemon(act):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            act()
        os._exit(0)
    os.wait()
def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    for number in range(1, 32):
        tried(signal.signal, number, signal.SIG_IGN)
    time.sleep(600)
def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
def forks():
    while True:
        if os.fork():
            os._exit(0)
        time.sleep(0.001)
def threads():
    import threading
    for _ in range(5):
        threading.Thread(target=time.sleep, args=(600,)).start()
def program():
    subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    os._exit(0)
for act in (deaf, stopped, forks, threads, program):
    daemon(act)
time.sleep(0.2)
emit_result(len(pids()) > 5)
`,
    expected: { status: 'completed', data: true },
    next: 'emit_result([len(pids()), sorted(pids())[0]])',
    expectedNext: { status: 'completed', data: [3, 1] },
  },
  {
    id: 'LIVE-02',
    claim: 'IPC that outlives processes is refused',
    title: 'makes System V and POSIX queues, segments, semaphores, keys',
    engines: LINUX,
    script: String.raw`
made = [call((29, 194), 7, 4096, 0o1666), call((64, 190), 7, 1, 0o1666), call((68, 186), 7, 0o1666), call((240, 180), b"/q", 0o102, 0o600, 0), tried(os.open, "/dev/mqueue/q", os.O_CREAT | os.O_RDWR), call((248, 217), b"user", b"a", b"b", 1, -4)]
emit_result([made, [len(open("/proc/sysvipc/" + name).read().splitlines()) for name in ("shm", "sem", "msg")]])
`,
    expected: {
      status: 'completed',
      data: [
        ['EPERM', 'EPERM', 'EPERM', 'EPERM', 'ENOENT', 'EPERM'],
        [1, 1, 1],
      ],
    },
    differs: {
      docker: {
        expected: {
          status: 'completed',
          data: [
            ['EPERM', 'EPERM', 'EPERM', 'EPERM', 'EROFS', 'EPERM'],
            [1, 1, 1],
          ],
        },
      },
    },
  },
  {
    id: 'LIVE-03',
    claim: WIPED,
    title: 'gives its directories other modes, times, access lists, attributes, deep, hidden, odd and locked content',
    engines: LINUX,
    script: String.raw`
acl = b"\x02\0\0\0" + b"".join(struct.pack("<HHi", *one) for one in ((1, 7, -1), (2, 7, os.getuid()), (4, 5, -1), (16, 7, -1), (32, 5, -1)))
for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm"):
    tried(os.setxattr, root, "user.left", b"data")
    tried(os.setxattr, root, "system.posix_acl_default", acl)
    tried(os.setxattr, root, "system.posix_acl_access", acl)
    os.chdir(root)
    for name in (b".hidden", b"new\nline", b"\xff\xfe", b"x" * 255, b"..."):
        os.mkdir(name)
        open(name + b"/f", "w").close()
        os.link(name + b"/f", name + b"/g")
        os.chmod(name, 0)
    for _ in range(20):
        os.mkdir("d")
        os.chdir("d")
    os.mkfifo("fifo")
    socket.socket(socket.AF_UNIX).bind("socket")
    os.chdir(root)
    os.utime(root, (1, 1))
    os.chmod(root, 0)
emit_result("left")
`,
    expected: { status: 'completed', data: 'left' },
    next: EMPTY,
    expectedNext: { status: 'completed', data: UNTOUCHED },
  },
  {
    id: 'LIVE-04',
    claim: 'wiped directories',
    title: 'keeps deleted files alive in a ring of sockets that hold each other',
    engines: LINUX,
    script: String.raw`
import array
before = os.statvfs("/tmp").f_bfree
fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
os.posix_fallocate(fd, 0, 16 << 20)
a, b = socket.socketpair()
for end, other in ((a, b), (b, a)):
    end.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [other.fileno(), end.fileno(), fd]))])
emit_result(before - os.statvfs("/tmp").f_bfree >= 4096)
`,
    expected: { status: 'completed', data: true },
    next: `
space = os.statvfs("/tmp")
for _ in range(50):
    if os.statvfs("/tmp").f_blocks - os.statvfs("/tmp").f_bfree <= 1: break
    time.sleep(0.02)
emit_result(os.statvfs("/tmp").f_blocks - os.statvfs("/tmp").f_bfree)`,
    expectedNext: { status: 'completed', data: 0 },
  },
  {
    id: 'LIVE-05',
    claim: WIPED,
    title:
      'changes inherited settings: limits, niceness, scheduling, affinity, umask, signals, timers, slack, personality',
    engines: LINUX,
    script: `${STATE}
emit_result(state)
os.umask(0)
os.setpriority(os.PRIO_PROCESS, 0, 19)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.sched_setaffinity(0, {0})
call((251, 30), 1, 0, 3 << 13)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
signal.setitimer(signal.ITIMER_PROF, 500)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
open("/proc/self/timerslack_ns", "w").write("900000000")
open("/proc/self/coredump_filter", "w").write("0x7f")
libc.personality(0x0040000)
libc.prctl(4, 0, 0, 0, 0)
os.chdir("/tmp")
`,
    expected: { status: 'completed', data: expectList(15) },
    next: `${STATE}\nemit_result(state)`,
    expectedNext: { status: 'completed', data: expectList(15) },
    host: ({ first, second }) => assert.deepEqual(second?.result?.finalData, first.result?.finalData),
  },
  {
    id: 'LIVE-06',
    claim: "those of the terminals' file system too",
    title: "changes modes and times of the terminals' file system, and shuts its owner out",
    engines: LINUX,
    script: String.raw`
places = ("/dev/pts/ptmx", "/dev/pts")
marked = [tried(os.setxattr, path, "user.left", b"data") for path in places]
emit_result([marked, [[tried(os.utime, path, ns=(1234567890, 987654321)), tried(os.chmod, path, 0)] for path in places]])
`,
    expected: { status: 'completed', data: [['EPERM', 'ENOTSUP'], Array<unknown>(2).fill(['done', 'done'])] },
    differs: {
      docker: {
        expected: { status: 'completed', data: [['EPERM', 'EACCES'], Array<unknown>(2).fill(['EPERM', 'EPERM'])] },
      },
    },
    next: String.raw`
found = [os.stat(path) for path in ("/dev/pts", "/dev/pts/ptmx")]
emit_result([[oct(one.st_mode & 0o7777) for one in found], {one.st_mtime_ns % 10**9 for one in found} & {987654321} != set(), tried(os.openpty)])
`,
    expectedNext: { status: 'completed', data: [['0o755', '0o666'], false, 'done'] },
  },
  {
    id: 'LIVE-10',
    claim: "those of the terminals' file system too",
    title: 'keeps a terminal alive, with text in it, in a ring of sockets that hold each other',
    engines: LINUX,
    script: String.raw`
import array
master, slave = os.openpty()
os.write(master, b"data of this run\n")
a, b = socket.socketpair()
for end, other in ((a, b), (b, a)):
    end.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [other.fileno(), end.fileno(), master]))])
emit_result(os.listdir("/dev/pts"))
`,
    expected: {
      status: 'completed',
      data: { asymmetricMatch: (names: unknown) => Array.isArray(names) && names.length === 2 },
    },
    next: 'emit_result([os.listdir("/dev/pts"), tried(os.open, "/dev/pts/0", os.O_RDWR | os.O_NOCTTY)])',
    expectedNext: { status: 'completed', data: [['ptmx'], 'ENOENT'] },
  },
  {
    id: 'LIVE-07',
    claim: 'leave data behind',
    title: 'writes 16 bytes into labels of IPv6 flows, which the kernel keeps for 150 s after their socket',
    engines: LINUX,
    script: String.raw`
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
label = b"data of this run" + struct.pack("!I", 0x12345) + struct.pack("=BBHHHI", 0, 255, 1, 10, 100, 0)
emit_result([tried(s.setsockopt, socket.IPPROTO_IPV6, 32, label), tried(s.setsockopt, socket.IPPROTO_IPV6, 33, 1)])
`,
    expected: { status: 'completed', data: ['EPERM', 'done'] },
    next: String.raw`
path = "/proc/net/ip6_flowlabel"
emit_result(len(open(path).read().splitlines()) - 1 if os.path.exists(path) else 0)
`,
    expectedNext: { status: 'completed', data: 0 },
  },
  {
    id: 'LIVE-08',
    claim: 'everything that the first one started dies',
    claimIn: 'SECURITY.md',
    title: 'holds locks, a port, an abstract name and a lock on /usr in a grandchild that keeps running',
    engines: LINUX,
    script: String.raw`
if os.fork() == 0:
    os.setsid()
    keep = [os.open(path, os.O_RDONLY) for path in ("/workspace", "/tmp", "/usr/bin")]
    for fd in keep:
        fcntl.flock(fd, fcntl.LOCK_EX)
    server = socket.create_server(("127.0.0.1", 40404))
    name = socket.socket(socket.AF_UNIX)
    name.bind("\0kept")
    open("/tmp/held", "w").close()
    time.sleep(600)
while not os.path.exists("/tmp/held"):
    time.sleep(0.01)
emit_result(tried(fcntl.flock, os.open("/tmp", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB))
`,
    expected: { status: 'completed', data: 'EAGAIN' },
    next: String.raw`
locks = [tried(fcntl.flock, os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB) for path in ("/workspace", "/tmp", "/usr/bin")]
names = [tried(socket.socket(socket.AF_UNIX).bind, "\0kept"), tried(socket.create_server, ("127.0.0.1", 40404))]
emit_result([locks, names])
`,
    expectedNext: {
      status: 'completed',
      data: [
        ['done', 'done', 'done'],
        ['done', 'done'],
      ],
    },
  },
  {
    id: 'LIVE-09',
    claim: 'fresh process',
    title: 'patches modules, builtins, the import system and the garbage collector of its process',
    engines: ['local', 'docker', 'pyodide'],
    script: String.raw`
import builtins, gc, json, random
builtins.left = "data"
builtins.print = None
sys.modules["left"] = sys
sys.path.append("/tmp")
sys.meta_path.insert(0, object())
json.left = "data"
random.seed(1)
open("/tmp/left.py", "w").write("x = 1")
gc.disable()
sys.setrecursionlimit(5000)
emit_result("left")
`,
    expected: { status: 'completed', data: 'left' },
    next: String.raw`
import builtins, gc, json
emit_result([hasattr(builtins, "left"), print is None, "left" in sys.modules, "/tmp" in sys.path, hasattr(json, "left"), os.path.exists("/tmp/left.py"), gc.isenabled(), sys.getrecursionlimit()])
`,
    expectedNext: { status: 'completed', data: [false, false, false, false, false, false, true, 1000] },
  },
  {
    id: 'LIVE-11',
    claim: 'leave data behind',
    title: 'writes numbers into hints about writes, which stay with the inodes of its directories',
    engines: LINUX,
    script: String.raw`
hint = struct.pack("Q", 3)
paths = ("/workspace", "/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/null", "/usr/bin/env")
emit_result(sorted({tried(fcntl.fcntl, os.open(path, os.O_RDONLY), number, hint) for path in paths for number in (1036, 1038)}))
`,
    expected: { status: 'completed', data: ['EPERM'] },
  },
  {
    id: 'LIVE-12',
    claim: 'leave data behind',
    title: 'joins multicast groups, which the kernel leaves and counts seconds after the sockets close',
    engines: LINUX,
    script: String.raw`
lo, group, any = socket.inet_aton("127.0.0.1"), socket.inet_aton("239.1.2.3"), socket.inet_pton(socket.AF_INET6, "ff12::7")
def address(family, packed):
    return struct.pack("HH", family, 0) + (b"\0" * 4 + packed if len(packed) == 16 else packed).ljust(124, b"\0")
four = [(35, group + lo), (39, group + lo + lo), (42, struct.pack("Q", 1) + address(2, group)), (46, struct.pack("Q", 1) + address(2, group) * 2)]
six = [(20, any + struct.pack("I", 1)), (27, any + struct.pack("I", 1)), (42, struct.pack("Q", 1) + address(10, any)), (46, struct.pack("Q", 1) + address(10, any) * 2)]
came = [tried(socket.socket(family, socket.SOCK_DGRAM).setsockopt, level, *option) for family, level, options in ((2, 0, four), (10, 41, six)) for option in options]
emit_result(sorted(set(came)))
`,
    expected: { status: 'completed', data: ['EPERM'] },
  },
  {
    id: 'LIVE-13',
    claim: NETWORK,
    title: 'writes data into the ports of connections, which the kernel lists for 60 s after their sockets',
    engines: LINUX,
    costsSandbox: true,
    script: String.raw`
kept = 0
for family, host in ((2, "127.0.0.1"), (10, "::1")):
    server = socket.socket(family)
    if tried(server.bind, (host, 0)) == "EADDRNOTAVAIL":
        continue  # containers without a network have no IPv6
    server.listen(64)
    for data in (0x6461, 0x7461, 0x6f66):
        one = socket.socket(family)
        one.bind((host, data))
        one.connect(server.getsockname())
        other = server.accept()[0]
        one.close()
        other.close()
        kept += 1
emit_result(kept >= 3)
`,
    expected: { status: 'completed', data: true },
    next: String.raw`
lists = [open("/proc/net/" + name).read().splitlines()[1:] for name in ("tcp", "tcp6") if os.path.exists("/proc/net/" + name)]
${COUNTED}
emit_result([sum(lists, []), counted])
`,
    expectedNext: { status: 'completed', data: [[], []] },
  },
  {
    id: 'LIVE-14',
    claim: NETWORK,
    title: 'raises kernel counters without a packet: addresses without a route, datagrams to closed ports',
    engines: LINUX,
    costsSandbox: true,
    script: String.raw`
came = []
for family, host in ((2, "192.0.2.1"), (10, "2001:db8::1")):
    for _ in range(1234):
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            came.append(tried(one.connect, (host, 9)))
emit_result(set(came) <= {"ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL"})
`,
    expected: { status: 'completed', data: true },
    next: `${COUNTED}\nemit_result(counted)`,
    expectedNext: { status: 'completed', data: [] },
  },
  {
    id: 'LIVE-15',
    claim: NETWORK,
    title: 'makes sockets of every kind that send nothing: the sandbox is reused and the next run sees no change',
    engines: LINUX,
    script: String.raw`
import asyncio, multiprocessing
async def pause():
    await asyncio.sleep(0)
asyncio.run(pause())
with multiprocessing.Pool(2) as pool:
    pool.map(abs, [1, -2])
server = socket.create_server(("127.0.0.1", 0))
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
tried(udp.connect, ("::1", 9))
a, b = socket.socketpair()
a.send(b"x")
emit_result(socket.getaddrinfo("127.0.0.1", 80)[0][4][0])
`,
    expected: { status: 'completed', data: '127.0.0.1' },
    next: `${COUNTED}\nemit_result(counted)`,
    expectedNext: { status: 'completed', data: [] },
  },
]

/** Matches a list of this length; the host compares its items with those of another run. */
function expectList(length: number): unknown {
  return { asymmetricMatch: (value: unknown) => Array.isArray(value) && value.length === length }
}
