import assert from 'node:assert/strict'
import { type FreshCase, LINUX, settlesWithin } from '../fresh-case.ts'

const EXHAUST = 'exhaust memory, processes, CPU, disk'
const COUNTED = 'exhaust what the kernel counts for the whole machine'

/** Attacks that use up memory, disk, descriptors or time. */
export const EXHAUSTING: readonly FreshCase[] = [
  {
    id: 'LOAD-01',
    claim: EXHAUST,
    title: 'keeps its data in TCP buffers of loopback connections, beside its memory limit',
    engines: ['local'],
    costsSandbox: true,
    options: { limits: { executionTimeoutSec: 20 } },
    script: String.raw`
server = socket.create_server(("127.0.0.1", 0), backlog=256)
limit, total, keep = 512 << 20, 0, []
piece = bytes(1 << 20)
for _ in range(120):
    a = socket.create_connection(server.getsockname())
    b, _ = server.accept()
    a.setblocking(False)
    for end, what in ((a, socket.SO_SNDBUF), (b, socket.SO_RCVBUF)):
        end.setsockopt(socket.SOL_SOCKET, what, 1 << 22)
    keep += [a, b]
    try:
        while total < 2 * limit:
            total += a.send(piece)
    except BlockingIOError:
        pass
emit_result(total <= limit)
`,
    expected: { status: 'completed', data: true },
  },
  {
    id: 'LOAD-07',
    claim: 'delay its end by using up its CPU limit',
    title: 'evades the deadline: blocks and ignores SIGALRM, stops the timer, swallows BaseException, loops in C',
    engines: LINUX,
    options: { limits: { executionTimeoutSec: 1 } },
    script: String.raw`
import threading
signal.setitimer(signal.ITIMER_REAL, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
signal.signal(signal.SIGALRM, signal.SIG_IGN)
for _ in range(4):
    if os.fork() == 0:
        while True:
            pass
def loop():
    try:
        sum(range(10 ** 12))
    except BaseException:
        loop()
loop()
`,
    expected: { status: 'timed-out', data: null },
    host: settlesWithin(3500),
  },
  {
    id: 'LOAD-08',
    claim: 'delay its end by using up its CPU limit',
    title: 'stops itself, so that no signal but SIGKILL reaches it',
    engines: LINUX,
    options: { limits: { executionTimeoutSec: 1 } },
    script: 'os.kill(os.getpid(), signal.SIGSTOP)\nos.kill(0, signal.SIGSTOP)\nemit_result("went on")\n',
    expected: { status: 'timed-out', data: null },
    host: settlesWithin(3500),
  },
  {
    id: 'LOAD-09',
    claim: EXHAUST,
    costsSandbox: true, // on a busy machine, 60 such processes can outlast the wait for proof that they ended
    title: 'makes its end expensive: 60 processes, each with thousands of mappings and open files',
    engines: LINUX,
    options: { limits: { executionTimeoutSec: 3 } },
    script: String.raw`
import mmap
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
for _ in range(60):
    if os.fork() == 0:
        os.setsid()
        maps = [mmap.mmap(-1, 4096, prot=1 + n % 2) for n in range(2000)]
        files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1000)]
        time.sleep(600)
time.sleep(600)
`,
    expected: { status: 'timed-out', data: null },
    host: settlesWithin(7000),
  },
  {
    id: 'LOAD-10',
    claim: EXHAUST,
    title: 'allocates descriptors and timers until the kernel refuses',
    engines: LINUX,
    script: String.raw`
def until(act, most):
    for number in range(most):
        came = tried(act)
        if came != "done" and not isinstance(came, int):
            return [number < most, came]
    return [False, "no end"]
fds = until(lambda: os.open("/dev/null", os.O_RDONLY), 5000)
os.closerange(200, 5000)
made = ctypes.c_int()
timers = until(lambda: call((222, 107), 1, 0, ctypes.byref(made)), 100000)
emit_result([fds, timers])
`,
    expected: {
      status: 'completed',
      data: [
        [true, 'EMFILE'],
        [true, 'EAGAIN'],
      ],
    },
  },
  {
    id: 'LOAD-11',
    claim: 'every writable file system is sized',
    title: 'writes beyond the sizes: by fallocate, and by a mapped hole of a sparse file',
    engines: LINUX,
    script: String.raw`
def fill(root):
    fd = os.open(root, os.O_TMPFILE | os.O_RDWR)
    size = os.statvfs(root)
    return tried(os.posix_fallocate, fd, 0, size.f_blocks * size.f_frsize + (1 << 20))
filled = [fill(root) for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm")]
import mmap
def hole():
    with open("/tmp/hole", "w+b") as file:
        file.truncate(1 << 40)
        mapped = mmap.mmap(file.fileno(), 1 << 30)
        for at in range(0, 1 << 30, 4096):
            mapped[at] = 1
emit_result([filled, in_child(hole)])
`,
    expected: { status: 'completed', data: [['ENOSPC', 'ENOSPC', 'ENOSPC', 'ENOSPC'], -7] },
  },
  {
    id: 'LOAD-14',
    claim: "type, execution id and counts are the broker's",
    title:
      'crashes on an alternate stack that is none, by a bad address, by abort, and ends by an exit code that looks like a signal',
    engines: LINUX,
    script: String.raw`
def bus():
    ctypes.string_at(1)
def alternate():
    libc.sigaltstack(ctypes.create_string_buffer(struct.pack("<QiiQ", 1 << 12, 0, 0, 1 << 14), 24), None)
    import faulthandler
    faulthandler.enable()
    ctypes.string_at(1)
emit_result([in_child(alternate), in_child(bus), in_child(lambda: os._exit(139)), in_child(os.abort)])
os._exit(139)
`,
    expected: { status: 'completed', data: [-11, -11, 139, -6], warnings: ['crash'] },
    host: ({ first }) => {
      const { cause, exitCode, signal } = first.result?.ending ?? {}
      assert.deepEqual([cause, exitCode, signal], ['exit', 139, null])
    },
  },
  {
    id: 'LOAD-15',
    claim: 'a requested limit that cannot be enforced is refused',
    title: 'holds its data in buffers of Unix sockets, beside the pages of its processes',
    engines: LINUX,
    options: { limits: { executionTimeoutSec: 20 } },
    script: String.raw`
def pipes():
    keep = []
    piece = bytes(1 << 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    total = 0
    for _ in range(1500):
        a, b = socket.socketpair()
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        a.setblocking(False)
        keep += [a, b]
        try:
            while True:
                total += a.send(piece)
        except BlockingIOError:
            pass
pipes()
emit_result("held")
`,
    expected: { status: 'memory-limit', data: null },
  },
  {
    id: 'LOAD-16',
    claim: COUNTED,
    title: 'takes machine-wide resources: AIO contexts, huge pages, memory of compiled socket and system call filters',
    engines: LINUX,
    script: String.raw`
def contexts():
    made = ctypes.c_ulong()
    return call((206, 0), 1000, ctypes.byref(made))
def huge():
    at = libc.mmap(None, ctypes.c_size_t(2 << 20), 3, 0x40022, -1, ctypes.c_long(0))
    return errno.errorcode[ctypes.get_errno()] if at == -1 else "done"
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
program = struct.pack("HxxxxxxQ", 1, ctypes.addressof(code))
def attached():
    kinds = [socket.socket(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), socket.socketpair()[0]]
    return sorted({tried(one.setsockopt, socket.SOL_SOCKET, number, program) for one in kinds for number in (26, 50, 51, 52)})
def filters():
    libc.prctl(38, 1, 0, 0, 0)
    allowing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allowing)))
    return [call((157, 167), 22, 2, filter, 0, 0), call((317, 277), 1, 0, filter), call((317, 277), 1, 1, filter)]
emit_result([contexts(), huge(), call((319, 279), b"huge", 4), attached(), filters()])
`,
    expected: { status: 'completed', data: ['EPERM', 'ENOMEM', 'ENOMEM', ['EPERM'], ['EINVAL', 'EINVAL', 'EINVAL']] },
  },
]
