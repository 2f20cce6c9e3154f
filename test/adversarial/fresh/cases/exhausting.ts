import assert from 'node:assert/strict'
import { type FreshCase, LINUX, type Look } from '../fresh-case.ts'

const EXHAUST = 'exhaust memory, processes, CPU, disk'
const FLOOD = 'output is counted in the sandbox and on the host; neither reads ahead of its reader'
const ALL = ['local', 'docker', 'pyodide'] as const

/** It settled within its deadline, the grace and a second. */
function settlesWithin(ms: number): (look: Look) => void {
  return ({ first }) => assert.ok(first.wallMs < ms, `it took ${Math.round(first.wallMs)} ms`)
}

/** Memory, disk, output, descriptors, time, collected files. */
export const EXHAUSTING: readonly FreshCase[] = [
  {
    id: 'LOAD-01',
    claim: EXHAUST,
    title: 'keeps its data in TCP buffers of loopback connections, beside its memory limit',
    engines: ['local'],
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
    seen: { status: 'completed', data: true },
  },
  {
    id: 'LOAD-02',
    claim: FLOOD,
    title: 'gives values that JSON cannot carry, or not so large',
    engines: ALL,
    script: String.raw`
deep = []
for _ in range(100000):
    deep = [deep]
ring = {}; ring["me"] = ring
class Hostile(dict):
    def items(self): raise ValueError("no")
    def __iter__(self): raise ValueError("no")
given = [float("nan"), float("inf"), 10 ** 5000, -(2 ** 53), deep, ring, {(1,): 2}, {1: 1, "1": 2}, object(), {10 ** 5000: 1}, type, lambda: 1]
emit_result([tried(emit_intermediate, "x", one) for one in given])
`,
    seen: { status: 'completed', data: Array<unknown>(12).fill('ConversionError') },
  },
  {
    id: 'LOAD-03',
    claim: FLOOD,
    title: 'raises an error whose text hangs',
    engines: ALL,
    options: { limits: { executionTimeoutSec: 1 } },
    script: String.raw`
class Hangs(Exception):
    def __str__(self):
        while True:
            pass
    __repr__ = __str__
raise Hangs
`,
    seen: { status: 'timed-out', data: null },
    host: settlesWithin(4000),
  },
  {
    id: 'LOAD-04',
    claim: FLOOD,
    title: 'raises an error with a text of 50 MB, a chain of 500 causes, notes, a group and a long line',
    engines: ALL,
    script: String.raw`
error = ValueError("x" * 50_000_000)
for _ in range(500):
    try:
        raise KeyError("y" * 10000) from error
    except KeyError as next_error:
        error = next_error
if hasattr(error, "add_note"):
    for _ in range(1000):
        error.add_note("z" * 10000)
raise error
`,
    seen: { status: 'failed', data: null },
    host: ({ first }) => {
      const told = JSON.stringify([first.result?.error, first.result?.traceback]).length
      assert.ok(told < (1 << 20) + 4096, `${told} characters were told`)
    },
  },
  {
    id: 'LOAD-05',
    claim: FLOOD,
    title: 'floods logs, intermediates, standard output and error at once from many threads',
    engines: LINUX,
    script: String.raw`
import threading
def flood(act):
    while True:
        act()
for act in (lambda: emit_log("x" * 100), lambda: emit_intermediate("l", "x" * 100), lambda: os.write(1, b"x" * 4096), lambda: os.write(2, b"x" * 4096)):
    threading.Thread(target=flood, args=(act,), daemon=True).start()
time.sleep(600)
`,
    seen: { status: 'output-limit', data: null },
    host: ({ first }) => {
      settlesWithin(10_000)({ first } as Look)
      assert.ok(JSON.stringify(first.result).length < 4 << 20)
    },
  },
  {
    id: 'LOAD-06',
    claim: FLOOD,
    title: 'floods with empty pieces, which cost the host and count for nothing: empty logs and labels',
    engines: ALL,
    options: { limits: { executionTimeoutSec: 20 } },
    script: String.raw`
while True:
    emit_log("", "")
    emit_intermediate("", None)
`,
    seen: { status: 'output-limit', data: null },
  },
  {
    id: 'LOAD-07',
    claim: 'put off its end by using its CPU limit up',
    title: 'dodges the clock: blocks and ignores SIGALRM, stops the timer, swallows BaseException, loops in C',
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
    seen: { status: 'timed-out', data: null },
    host: settlesWithin(3500),
  },
  {
    id: 'LOAD-08',
    claim: 'put off its end by using its CPU limit up',
    title: 'stops itself, so that no signal but one reaches it',
    engines: LINUX,
    options: { limits: { executionTimeoutSec: 1 } },
    script: 'os.kill(os.getpid(), signal.SIGSTOP)\nos.kill(0, signal.SIGSTOP)\nemit_result("went on")\n',
    seen: { status: 'timed-out', data: null },
    host: settlesWithin(3500),
  },
  {
    id: 'LOAD-09',
    claim: EXHAUST,
    costsSandbox: true, // on a busy machine 60 such processes are not gone in the time in which that can be confirmed
    title: 'makes its end dear: 60 processes, each with thousands of mappings and open files',
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
    seen: { status: 'timed-out', data: null },
    host: settlesWithin(7000),
  },
  {
    id: 'LOAD-10',
    claim: EXHAUST,
    title: 'takes descriptors and timers until it is refused',
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
    seen: {
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
    seen: { status: 'completed', data: [['ENOSPC', 'ENOSPC', 'ENOSPC', 'ENOSPC'], -7] },
  },
  {
    id: 'LOAD-12',
    claim: 'nothing on the host opens or unpacks them',
    title: 'gives links, pipes, sockets, a sparse terabyte, locked, odd and escaping names to be collected',
    engines: LINUX,
    options: { collect: ['out/**'] },
    script: String.raw`
os.mkdir("out")
os.chdir("out")
os.symlink("/etc/passwd", "link")
os.symlink("/proc/1/environ", "broker")
os.symlink("/", "root")
os.symlink("../..", "up")
os.symlink("loop", "loop")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
with open("sparse", "w") as file:
    file.truncate(1 << 40) if tried(file.truncate, 1 << 40) == "done" else None
open("locked", "w").write("x")
os.chmod("locked", 0)
open("plain", "w").write("x")
os.link("plain", "hard")
os.mkdir("dir")
os.mkdir("dir/shut")
open("dir/shut/f", "w").write("x")
os.chmod("dir/shut", 0)
open("..\\..\\up", "w").write("x")
open("C:nul", "w").write("x")
open(b"\xff", "w").write("x")
emit_result("left")
`,
    seen: { status: 'completed', data: 'left', warnings: ['collect_skipped'] },
    host: ({ first }) => {
      const texts = (first.result?.files ?? []).map(({ path, content }) => [path, Buffer.from(content).toString()])
      assert.deepEqual(
        texts.filter(([, text]) => text !== 'x'),
        [],
      )
      assert.deepEqual(
        texts
          .map(([path]) => path)
          .filter((path) => !/^out\/[^/]/.test(path ?? '') || /(^|\/)\.\.(\/|$)/.test(path ?? '')),
        [],
      )
      assert.ok(texts.some(([path]) => path === 'out/plain'))
    },
  },
  {
    id: 'LOAD-13',
    claim: 'nothing on the host opens or unpacks them',
    title: 'renames what is collected while the run ends: what comes is whole, and of a regular file',
    engines: LINUX,
    options: { collect: ['out/**'] },
    script: String.raw`
os.mkdir("out")
open("out/a", "w").write("x")
if os.fork() == 0:
    os.setsid()
    while True:
        tried(os.symlink, "/etc/passwd", "out/tmp")
        tried(os.rename, "out/tmp", "out/a")
        with open("out/tmp", "w") as file:
            file.write("x")
        tried(os.rename, "out/tmp", "out/a")
time.sleep(0.1)
emit_result("raced")
`,
    seen: { status: 'completed', data: 'raced' },
    host: ({ first }) =>
      assert.deepEqual(
        (first.result?.files ?? []).filter(({ content }) => !['', 'x'].includes(Buffer.from(content).toString())),
        [],
      ),
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
    seen: { status: 'completed', data: [-11, -11, 139, -6], warnings: ['crash'] },
    host: ({ first }) => {
      const { cause, exitCode, signal } = first.result?.ending ?? {}
      assert.deepEqual([cause, exitCode, signal], ['exit', 139, null])
    },
  },
  {
    id: 'LOAD-15',
    claim: 'one that is asked for and cannot be enforced is refused',
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
    seen: { status: 'memory-limit', data: null },
  },
]
