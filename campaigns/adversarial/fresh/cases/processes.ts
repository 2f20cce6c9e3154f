import assert from 'node:assert/strict'
import { type FreshCase, LINUX } from '../fresh-case.ts'

const OWN_ONLY = '`/proc` shows its own processes only'
const SHIELD = 'PID 1 takes no signal of its namespace'
const DUMPABLE = 'no `/proc/PID/mem`, no ptrace, no `process_vm_*`, no `pidfd_getfd`'

/** Attacks on host processes, broker and zygote, and on the memory, descriptors and environment of the harness. */
export const PROCESSES: readonly FreshCase[] = [
  {
    id: 'PROC-01',
    claim: OWN_ONLY,
    title: 'signals every number that a process of the host may have, the host itself first',
    engines: LINUX,
    script: String.raw`
own = {1, zygote(), os.getpid()}
came = {tried(os.kill, pid, 0) for pid in range(2, 70000) if pid not in own}
emit_result([sorted(came), sorted(own) == pids(), tried(os.kill, 1, signal.SIGKILL)])
`,
    expected: { status: 'completed', data: [['ESRCH'], true, 'EPERM'] },
  },
  {
    id: 'PROC-02',
    claim: SHIELD,
    title: 'gets a pidfd of the broker from its socket (SO_PEERPIDFD), and /proc/1 as one, and sends every signal',
    engines: LINUX,
    script: String.raw`
sent = set()
ends = [os.open("/proc/1", os.O_DIRECTORY)]
for fd in range(3, 10):
    try:
        ends.append(socket.socket(fileno=os.dup(fd)).getsockopt(socket.SOL_SOCKET, 77))
    except OSError:
        pass
for end in ends:
    for number in range(0, 65):
        sent.add(tried(signal.pidfd_send_signal, end, number))
    sent.add(call(438, end, 0, 0))
    sent.add(call(440, end, 0, 0, 0, 0))
    sent.add(call((308, 268), end, 0x20000000))
time.sleep(0.1)
emit_result([len(ends) > 0, sorted(sent - {"done", "EINVAL", "EBADF", "ENOSYS"}, key=str)])
`,
    expected: { status: 'completed', data: [true, ['EPERM']] },
    host: ({ processes }) => {
      const brokers = (list: typeof processes.before): number[] =>
        list.flatMap(({ insidePid, pid }) => (insidePid === 1 ? [pid] : []))
      assert.deepEqual(brokers(processes.after), brokers(processes.before))
    },
  },
  {
    id: 'PROC-03',
    claim: SHIELD,
    title: 'writes to every file of /proc/1 and of the zygote that opens',
    engines: LINUX,
    script: String.raw`
wrote = []
for pid in (1, zygote()):
    for at, _, names in os.walk(f"/proc/{pid}"):
        for name in names:
            path = at + "/" + name
            for value in (b"1", b"0", b"15"):
                def write():
                    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                    try:
                        os.write(fd, value)
                    finally:
                        os.close(fd)
                if tried(write) == "done":
                    wrote.append(path)
emit_result(wrote)
`,
    expected: { status: 'completed', data: [] },
  },
  {
    id: 'PROC-04',
    claim: DUMPABLE,
    title: 'reads all files of broker and zygote that open, and finds only the list of SECURITY.md',
    engines: LINUX,
    script: String.raw`
shut = ["mem", "maps", "smaps", "smaps_rollup", "numa_maps", "environ", "auxv", "pagemap", "clear_refs", "io", "stack", "syscall", "personality", "patch_state", "root", "cwd", "exe", "fd", "fdinfo", "map_files", "ns/mnt", "ns/net", "task/{}/mem", "task/{}/environ", "task/{}/fd", "mountstats"]
def look(pid, name):
    path = f"/proc/{pid}/" + name.format(pid)
    if not os.path.lexists(path) and tried(os.lstat, path) == "ENOENT":
        return "EACCES"
    if name in ("fd", "fdinfo", "map_files", "task/{}/fd"):
        return tried(os.listdir, path)
    if name in ("root", "cwd", "exe") or name.startswith("ns/"):
        return tried(os.readlink, path)
    return tried(lambda: os.read(os.open(path, os.O_RDONLY), 64))
emit_result({str(n): sorted({look(pid, name) for name in shut} - {"EACCES", "EPERM"}, key=str) for n, pid in enumerate((1, zygote()))})
`,
    expected: { status: 'completed', data: { '0': [], '1': [] } },
  },
  {
    id: 'PROC-05',
    claim: DUMPABLE,
    title: 'asks the kernel for lists, clocks and placement of the broker by other calls',
    engines: LINUX,
    script: String.raw`
word = ctypes.c_long()
size = ctypes.c_long(24)
emit_result([[
    call((274, 100), pid, ctypes.byref(word), ctypes.byref(size)),
    call((312, 272), os.getpid(), pid, 0, 0, 0),
    call((310, 270), pid, 0, 0, 0, 0, 0),
    call((311, 271), pid, 0, 0, 0, 0, 0),
    call((101, 117), 16, pid, 0, 0),
    call((101, 117), 0x4206, pid, 0, 0),
    call((256, 238), pid, 0, 0, 0),
    call((279, 239), pid, 0, 0, 0, 0, 0),
    call((227, 112), (~pid << 3) | 2, ctypes.byref(word)),
    tried(resource.prlimit, pid, resource.RLIMIT_CPU, (0, 0)),
    tried(os.setpriority, os.PRIO_PROCESS, pid, 19),
    tried(os.sched_setaffinity, pid, {0}),
] for pid in (1, zygote())])
`,
    expected: { status: 'completed', data: [Array<unknown>(12).fill('EPERM'), Array<unknown>(12).fill('EPERM')] },
  },
  {
    id: 'PROC-06',
    claim: 'signal, renice, limit the broker',
    title: 'has timers and descriptors send signals to the broker, its threads and its group',
    engines: LINUX,
    script: String.raw`
r, w = os.pipe()
made = ctypes.c_int()
event = ctypes.create_string_buffer(struct.pack("<QiiI", 0, signal.SIGKILL, 4, 1), 64)
thread = ctypes.create_string_buffer(struct.pack("<QiiI", 0, signal.SIGKILL, 4, zygote()), 64)
timers = [call((222, 107), 1, one, ctypes.byref(made)) for one in (event, thread)]
owners = []
for pid in (1, -1):
    owners.append(tried(fcntl.fcntl, r, fcntl.F_SETOWN, pid))
    owners += [tried(fcntl.ioctl, socket.socket(), request, struct.pack("i", pid)) for request in (0x8901, 0x8902)]
owners += [tried(fcntl.fcntl, r, 15, struct.pack("ii", kind, 1)) for kind in (0, 1, 2)]
emit_result([timers, owners, tried(os.setpgid, zygote(), 0), tried(os.setpgid, 1, 0)])
`,
    expected: { status: 'completed', data: [['EINVAL', 'EINVAL'], Array<unknown>(9).fill('EPERM'), 'ESRCH', 'ESRCH'] },
  },
  {
    id: 'PROC-07',
    claim: 'descriptors, environment',
    title: 'has only its own descriptors and environment, and finds no host data in argv or environ of any process',
    engines: LINUX,
    script: String.raw`
kinds = {}
for fd in range(0, 4096):
    try:
        kinds[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError:
        pass
peers = [fd for fd, kind in kinds.items() if kind == stat.S_IFSOCK]
texts = b"".join(open(f"/proc/{pid}/cmdline", "rb").read() for pid in pids()) + open("/proc/self/environ", "rb").read()
emit_result([kinds[0] == stat.S_IFCHR, kinds[1] == stat.S_IFIFO, kinds[2] == stat.S_IFIFO, len(kinds) - 3 == len(peers), len(peers) <= 2, sorted(k for k in os.environ if k.startswith(("SANDGLASS", "VITEST", "npm", "NODE"))), b"@@HOST_ENV_CANARY@@" in texts, "HOST_FD" in os.environ])
`,
    expected: { status: 'completed', data: [true, true, true, true, true, [], false, false] },
  },
  {
    id: 'PROC-08',
    claim: "each run's secrets go over the channel into its own process only",
    title: 'a later run searches all of its memory for the secret of an earlier one',
    engines: LINUX,
    script: String.raw`
held = [os.environ["SECRET"] * 1000, os.environ["SECRET"].encode() * 1000]
open("/tmp/kept", "w").write(held[0])
emit_result(len(held))
`,
    options: { secrets: { SECRET: '@@SECRET_OF_PREVIOUS_RUN@@' } },
    expected: { status: 'completed', data: 2 },
    next: String.raw`
import re
half = bytes(c ^ 1 for c in b"qsdwhntr,")
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps:
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        if "r" not in line.split()[1] or "[v" in line:
            continue
        try:
            memory.seek(start)
            block = memory.read(end - start)
        except (OSError, ValueError):
            continue
        found += len(re.findall(re.escape(half) + rb"[0-9a-f]{12}", block))
        del block
emit_result([found, os.listdir("/tmp"), "SECRET" in os.environ])
`,
    expectedNext: { status: 'completed', data: [0, [], false] },
  },
  {
    id: 'PROC-09',
    claim: 'frames come over a private socket',
    title: 'sends the broker 200 descriptors over its sockets (SCM_RIGHTS): it keeps none',
    engines: LINUX,
    script: String.raw`
import array
given = os.memfd_create("sent-by-a-script")
sent = 0
for fd in range(3, 10):
    try:
        end = socket.socket(fileno=os.dup(fd))
        for _ in range(20):
            end.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [given] * 10))])
            sent += 10
        while fcntl.ioctl(end, 0x5411, bytes(4)) != bytes(4):
            time.sleep(0.001)  # until the broker took them: at a run's end it reads only so many pieces
    except OSError:
        pass
emit_result(sent > 0)
`,
    expected: { status: 'completed', data: true },
    host: ({ opened }) => {
      const targets = opened()
      assert.ok(targets.length > 3)
      assert.deepEqual(
        targets.filter((target) => target.includes('sent-by-a-script')),
        [],
      )
    },
  },
]
