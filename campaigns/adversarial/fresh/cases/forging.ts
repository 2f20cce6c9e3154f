import assert from 'node:assert/strict'
import { type FreshCase, LINUX, type Observation } from '../fresh-case.ts'

const FRAMES = "frames come over a private socket; type, execution id and counts are the broker's"
const TRUSTS = 'the host compares ids and trusts only its own state'
const PARSER = 'bounded before parsing, own line splitter, schema per frame, nothing looked up by a name from the wire'

/** Writes a line to each descriptor that may lead to the broker. */
const RAW = String.raw`
import json
ends = []
for fd in range(3, 10):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            ends.append(fd)
    except OSError:
        pass
def raw(line):
    data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
    for fd in ends:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]
`

/** Every event is of the run, and the prototypes of the host are as they were. */
function isOfOneRun({ first }: Observation): void {
  const ids = new Set(first.events.map(({ executionId }) => executionId))
  assert.deepEqual([...ids], [first.result?.executionId])
  assert.equal(first.events.filter(({ type }) => type === 'result').length, 0)
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  assert.equal(([] as unknown as Record<string, unknown>)['polluted'], undefined)
}

/** The events that a script sent to the host, in order, without the id of the run. */
function told({ first }: Observation): unknown[] {
  const without = (key: string, value: unknown): unknown => (key === 'executionId' ? undefined : value)
  return JSON.parse(
    JSON.stringify(
      first.events.filter(({ type }) => type !== 'started'),
      without,
    ),
  ) as unknown[]
}

/** The lines of FORGE-06 that are script frames, parsed into objects without changed prototypes. */
const TOLD_OF_ODD_LINES = String.raw`[
  {"type":"log","level":"i","message":"m"},
  {"type":"intermediate","label":"{}","data":1},
  {"type":"intermediate","label":"__proto__","data":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}},
  {"type":"final_result","data":{"__proto__":{"polluted":true}}}
]`

/** Attacks on results, ids and the host's parser. */
export const FORGING: readonly FreshCase[] = [
  {
    id: 'FORGE-01',
    claim: FRAMES,
    title: 'writes frames of the broker: script_done, ready, pong, stdout, check_result, tool_result, sealed ones',
    engines: LINUX,
    script: `${RAW}
for kind in ("script_done", "ready", "pong", "stdout", "stderr", "check_result", "tool_result", "file_data", "collected", "execute", "cancel", "reset", "Final_result", "final_result\\u0000", "__proto__", "constructor"):
    raw({"type": kind, "execution_id": "other", "id": "other", "status": "completed", "exit_code": 0, "cause": "exit", "text": "forged", "data": "forged"})
emit_result("real")
`,
    expected: { status: 'completed', data: 'real' },
    host: (observed) => {
      isOfOneRun(observed)
      assert.deepEqual(told(observed), [{ type: 'final_result', data: 'real' }])
      assert.equal(observed.first.result?.ignoredFrames, 0) // the broker dropped them
      assert.doesNotMatch(JSON.stringify(observed.first.result), /forged|other/)
    },
  },
  {
    id: 'FORGE-02',
    claim: TRUSTS,
    title: 'stamps its own result with the id of another run, counts and a second type',
    engines: LINUX,
    script: `${RAW}
raw(b'{"type":"log","execution_id":"@@EXECUTION_ID@@","message":"m","level":"info","execution_id":"other","seq":99}\\n')
raw(b'{"type":"final_result","execution_id":"@@EXECUTION_ID@@","type":"final_result","data":"own","success":false,"output_bytes":-1}\\n')
`,
    expected: { status: 'completed', data: 'own' },
    host: isOfOneRun,
  },
  {
    id: 'FORGE-03',
    claim: TRUSTS,
    title:
      'forks: child, grandchild and thread each give a result; one counts, and the tool of the parent is not theirs',
    engines: LINUX,
    script: String.raw`
import threading
def child():
    in_child(lambda: emit_result("grandchild"))
    emit_result("child")
in_child(child)
t = threading.Thread(target=emit_result, args=("thread",)); t.start(); t.join()
emit_result("parent")
`,
    expected: { status: 'completed', data: 'grandchild', warnings: ['second_result'] },
    host: isOfOneRun,
  },
  {
    id: 'FORGE-04',
    claim: TRUSTS,
    title: 'emits after its result: atexit, __del__, threads, exit, audit and trace hooks',
    engines: LINUX,
    script: String.raw`
import atexit, threading
class Late:
    def __del__(self):
        emit_result("del")
late = Late()
late.me = late
atexit.register(lambda: emit_result("atexit"))
sys.addaudithook(lambda name, _: None)
sys.settrace(lambda *_: None)
sys.excepthook = lambda *_: emit_result("hook")
sys.unraisablehook = lambda *_: emit_result("unraisable")
threading.Thread(target=lambda: (time.sleep(0.05), emit_result("thread"))).start()
signal.signal(signal.SIGTERM, lambda *_: emit_result("signal"))
emit_result("first")
raise SystemExit(3)
`,
    expected: { status: 'completed', data: 'first', warnings: ['error_after_result', 'second_result'] },
    host: isOfOneRun,
  },
  {
    id: 'FORGE-05',
    claim: TRUSTS,
    title: 'finds the runtime through gc and sys.modules, and has it write under another id and status',
    engines: LINUX,
    script: String.raw`
import gc
for one in gc.get_objects():
    if isinstance(one, dict):
        for key in ("execution_id", "run_id", "_id", "_run_id"):
            if key in one and isinstance(one[key], str):
                one[key] = "other"
modules = [module for name, module in list(sys.modules.items()) if name.startswith("sandglass")]
for module in modules:
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, dict) and "execution_id" in value:
            value["execution_id"] = "other"
import builtins
builtins.print = lambda *_: None
emit_result(len(modules) > 0)
os.write(1, b"said")
`,
    expected: { status: 'completed', data: true },
    host: (observed) => {
      isOfOneRun(observed)
      assert.equal(observed.first.result?.stdout, 'said')
    },
  },
  {
    id: 'FORGE-06',
    claim: PARSER,
    title: 'sends lines that parsers fail on: invalid UTF-8, NaN, 10^400, 100,000 levels, __proto__, a list',
    engines: LINUX,
    script: `${RAW}
for line in (b"\\xff\\xfe{}\\n", b"NaN\\n", b"1" + b"0" * 400 + b"\\n", b"[" * 100000 + b"\\n", b'{"type":"log","message":NaN,"level":"i"}\\n', b'{"type":"log","message":"m","level":"i","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}\\n', b"null\\n", b"[]\\n", b'"final_result"\\n', b"\\r\\n\\r\\r\\n", b"\\x00\\n", b'{"type":["final_result"],"data":1}\\n', b'{"type":"intermediate","label":{},"data":1}\\n', b'\\n'):
    raw(line)
emit_intermediate("__proto__", {"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}})
emit_result({"__proto__": {"polluted": True}})
`,
    expected: { status: 'completed', data: JSON.parse('{"__proto__":{"polluted":true}}') as unknown },
    host: (observed) => {
      isOfOneRun(observed)
      assert.deepEqual(told(observed), JSON.parse(TOLD_OF_ODD_LINES))
      assert.equal(observed.first.result?.ignoredFrames, 0)
    },
  },
  {
    id: 'FORGE-07',
    claim: PARSER,
    title: 'sends one line of 80 MiB without an end',
    engines: LINUX,
    script: `${RAW}
piece = b"x" * (1 << 20)
for _ in range(80):
    tried(raw, piece)
emit_result("after")
`,
    expected: { status: 'output-limit', data: null },
    host: isOfOneRun,
  },
  {
    id: 'FORGE-08',
    claim: FRAMES,
    title: 'closes or passes on its frame socket, and exits with code 0',
    engines: LINUX,
    script: `${RAW}
import threading
emit_log("before")
for fd in ends:
    os.close(fd)
    os.dup2(os.open("/dev/null", os.O_RDWR), fd)
tried(emit_result, "lost")
os._exit(0)
`,
    expected: { status: 'crashed', data: null },
    host: isOfOneRun,
  },
  {
    id: 'FORGE-09',
    claim: 'output is counted in the sandbox and on the host',
    title: 'changes the pipe of its output: packets, size, non-blocking, reads from it, closes it',
    engines: LINUX,
    script: String.raw`
own = tried(os.open, "/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
os.write(1, b"taken")
taken = tried(lambda: os.read(own, 5).decode())
tried(fcntl.fcntl, 1, fcntl.F_SETFL, os.O_DIRECT | os.O_ASYNC)
tried(fcntl.fcntl, 1, 1031, 4096)
os.write(1, b"one "); os.write(1, b"two ")
os.write(1, b"\xff\xed\xa0\x80")
tried(os.close, own)
emit_result(taken in ("taken", "EAGAIN", "EBADF", "TypeError"))
`,
    expected: { status: 'completed', data: true },
    host: ({ first }) => {
      assert.match(first.result?.stdout ?? '', /^(taken)?one two \uFFFD+$/)
    },
  },
  {
    id: 'FORGE-10',
    claim: FRAMES,
    title: 'replaces the emit functions, JSON and os.write with functions that lie',
    engines: ['local', 'docker', 'pyodide'],
    script: String.raw`
import json
keep = emit_result
globals()["emit_result"] = lambda data: keep({"own": data})
json.dumps = lambda *_, **__: '{"type":"script_done"}'
json.JSONEncoder.encode = lambda *_: '{"type":"script_done"}'
os_write, os.write = os.write, lambda fd, data: os_write(fd, bytes(data))
emit_result(1)
`,
    expected: { status: 'completed', data: { own: 1 } },
    host: isOfOneRun,
  },
]
