import assert from 'node:assert/strict'
import type { FreshCase } from '../fresh-case.ts'

const ONLY: readonly ['pyodide'] = ['pyodide']
const BRIDGE = 'no object of JavaScript in Python, the bridge and `ctypes` out of the table of built-in modules'
const FILES = "Emscripten's own file system in memory"
const NETWORK = 'nothing that Python can name leads there'

/** Attacks on WebAssembly: the bridge, files, programs, the network. */
export const PYODIDE_CASES: readonly FreshCase[] = [
  {
    id: 'WASM-01',
    claim: BRIDGE,
    title: 'imports the bridge and ctypes by every way of the import system',
    engines: ONLY,
    script: String.raw`
import importlib, importlib.machinery, importlib.util, _imp
names = ["js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core", "pyodide.ffi", "pyodide.code", "_ctypes", "ctypes", "_ctypes_test", "_testcapi", "_testinternalcapi", "_testbuffer", "_xxsubinterpreters", "_interpreters", "micropip", "pyodide_http"]
came = set()
for name in names:
    ways = [importlib.import_module, importlib.machinery.BuiltinImporter.load_module, importlib.machinery.FrozenImporter.load_module, _imp.init_frozen]
    ways += [lambda name: _imp.create_builtin(importlib.machinery.ModuleSpec(name, None))]
    for way in ways:
        try:
            made = way(name)
        except ImportError:
            continue
        finally:
            sys.modules.pop(name, None)
        came.update(f"{name}.{inner}" for inner in vars(made or object) if made and not inner.startswith("__"))
emit_result(sorted(came))
`,
    expected: { status: 'completed', data: [] },
  },
  {
    id: 'WASM-02',
    claim: BRIDGE,
    title: 'hunts the heap, frames, subclasses and hooks for an object of JavaScript',
    engines: ONLY,
    script: String.raw`
import gc, types
def kin(top):
    seen, todo = set(), [top]
    while todo:
        one = todo.pop()
        if one in seen: continue
        seen.add(one)
        try: todo.extend(type.__subclasses__(one))
        except TypeError: pass
    return seen
words = ("JsProxy", "JsException", "JsArray", "JsCallable", "JsDomElement", "PyodideFuture", "WebLoop")
def makes(one):
    try:
        return type(one()).__name__
    except Exception:
        return None
made = [makes(one) for one in kin(object) if one.__name__.startswith(words)]
gc.unfreeze()
things = sorted({type(o).__name__ for o in gc.get_objects() if type(o).__name__.startswith(words)})
hooks = [type(h).__module__ for h in sys.meta_path + sys.path_hooks if "pyodide" in (type(h).__module__ or "")]
frames, at = [], sys._getframe()
while at:
    frames += [k for k, v in list(at.f_globals.items()) + list(at.f_locals.items()) if type(v).__name__.startswith(words)]
    at = at.f_back
emit_result([things, hooks, frames, sorted({one for one in made if one} - {"JsBigInt"})])
`,
    expected: { status: 'completed', data: [[], [], [], []] },
  },
  {
    id: 'WASM-10',
    claim: 'a call of the bridge ends the run',
    title:
      'has a class that the bridge left make an object of JavaScript: an error, whose constructor leads to Function',
    engines: ONLY,
    script: String.raw`
error = next(one for one in Exception.__subclasses__() if one.__name__ == "JsException")
emit_intermediate("found", 1)
emit_result(repr(error("TypeError", "message", "stack").constructor.constructor))
`,
    expected: { status: 'crashed', data: null },
    host: ({ first }) => {
      assert.equal(first.result?.intermediates.length, 1)
      assert.match(first.result?.error ?? '', /the bridge to JavaScript is disabled/)
    },
  },
  {
    id: 'WASM-03',
    claim: FILES,
    title: 'looks for files of the host: the canary, /etc, /proc, mounts, devices',
    engines: ONLY,
    script: String.raw`
paths = ["@@CANARY_FILE@@", "/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/version", "/root", "/sys", "/mnt", "/dev/mem", "/dev/fd/3", "/home/pyodide/../../@@CANARY_FILE@@", "file://@@CANARY_FILE@@"]
emit_result([sorted({tried(os.listdir, path) if path in ("/root", "/mnt") else tried(lambda: open(path).read(100)) for path in paths} & {tried(os.open, "@@CANARY_FILE@@", 0)}), any("host" in tried(open, p).__repr__() for p in paths), os.path.exists("@@CANARY_FILE@@"), os.path.exists("/etc/passwd") and "root" in open("/etc/passwd").read()])
`,
    expected: { status: 'completed', data: [['ENOENT'], false, false, false] },
  },
  {
    id: 'WASM-04',
    claim: NETWORK,
    title: 'connects to the host by sockets, URLs, asyncio and the modules of Pyodide',
    engines: ONLY,
    options: { limits: { executionTimeoutSec: 20 } },
    script: String.raw`
import asyncio, importlib
def url():
    import urllib.request
    urllib.request.urlopen("http://127.0.0.1:@@HOST_LISTENER_PORT@@/", timeout=1).read()
def tcp():
    socket.create_connection(("127.0.0.1", @@HOST_LISTENER_PORT@@), 1).send(b"x")
def raw():
    s = socket.socket(); s.settimeout(1); s.connect(("@@HOST_IP@@", @@HOST_LISTENER_PORT@@)); s.recv(1)
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2); s.sendto(b"x", ("127.0.0.1", @@HOST_UDP_ECHO_PORT@@)); s.recv(1)
def web():
    import webbrowser
    return webbrowser.open("http://127.0.0.1:@@HOST_LISTENER_PORT@@/") or 1 / 0
emit_result([tried(one) == "done" for one in (url, tcp, raw, udp, web)])
`,
    expected: { status: 'completed', data: [false, false, false, false, false] },
  },
  {
    id: 'WASM-05',
    claim: 'start programs',
    title: 'starts programs by os.system, popen, exec, spawn, fork, subprocess and dlopen of its own library',
    engines: ONLY,
    script: String.raw`
import importlib.machinery, importlib.util, subprocess
open("/tmp/x.so", "wb").write(b"\0asm\1\0\0\0\0\x08dylink.0\0")
spec = importlib.util.spec_from_file_location("x", "/tmp/x.so", loader=importlib.machinery.ExtensionFileLoader("x", "/tmp/x.so"))
came = [tried(os.system, "touch /tmp/pwned") in (0,) , tried(os.popen, "id") == "done", tried(os.execv, "/bin/sh", ["sh"]) == "done", tried(subprocess.run, ["id"]) == "done", tried(os.fork) == "done" if hasattr(os, "fork") else False, tried(lambda: importlib.util.module_from_spec(spec)) == "done", tried(os.posix_spawn, "/bin/sh", ["sh"], {}) == "done" if hasattr(os, "posix_spawn") else False]
emit_result(came)
`,
    expected: { status: 'completed', data: Array<unknown>(7).fill(false) },
  },
  {
    id: 'WASM-06',
    claim: "ids, counts and clocks are the host's; a run has a process of its own",
    title: 'writes frames to its descriptors as the engine does, and other lines',
    engines: ONLY,
    script: String.raw`
import json
for fd in range(3, 12):
    for line in (b"garbage\n", b'{"type":"script_done","execution_id":"other","cause":"exit"}\n', b'{"type":"log","execution_id":"other","message":"own","level":"info"}\n', b"\xff\xfe\n", b"null\n"):
        tried(os.write, fd, line)
emit_result("real")
`,
    expected: { status: 'completed', data: 'real' },
    host: ({ first }) => {
      assert.deepEqual([...new Set(first.events.map(({ executionId }) => executionId))], [first.result?.executionId])
    },
  },
  {
    id: 'WASM-07',
    claim: "a maximum on WebAssembly's memory, sizes of the writable directories",
    title: 'fills memory and each directory',
    engines: ONLY,
    options: { limits: { executionTimeoutSec: 20 } },
    script: String.raw`
def fill(root):
    try:
        with open(root + "/big", "wb") as file:
            for _ in range(1000):
                file.write(bytes(1 << 20))
        return "no end"
    except OSError as error:
        return "full"
    finally:
        tried(os.remove, root + "/big")
emit_result([fill(root) for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm")])
`,
    expected: { status: 'completed', data: ['full', 'full', 'full', 'full'] },
  },
  {
    id: 'WASM-08',
    claim: 'the process is killed; nothing else can be started',
    title: 'swallows its timeout, and loops in C',
    engines: ONLY,
    options: { limits: { executionTimeoutSec: 1 } },
    script: String.raw`
while True:
    try:
        sum(range(10 ** 12))
    except BaseException:
        pass
`,
    expected: { status: 'timed-out', data: null },
  },
  {
    id: 'WASM-09',
    claim: 'globals deleted; no code from text, no foreign WebAssembly',
    title: 'looks for what Pyodide leaves in Python: emscripten calls, run_js, register_js_module, environment, argv',
    engines: ONLY,
    script: String.raw`
names = [name for name, module in list(sys.modules.items()) if "pyodide" in name.lower() or "emscripten" in name.lower() or name == "js"]
calls = sorted(attribute for name, module in list(sys.modules.items()) for attribute in vars(module) if attribute in ("run_js", "eval_code", "register_js_module", "JsProxy", "to_js", "create_proxy", "loadPackage", "mountNodeFS"))
emit_result([names, calls, sorted(key for key in os.environ if key not in ("HOME", "PATH", "PWD", "LANG", "USER", "LOGNAME", "_", "PYTHONHASHSEED", "TMPDIR", "LC_ALL", "PYTHONUNBUFFERED", "OPENBLAS_NUM_THREADS", "MPLBACKEND"))])
`,
    expected: { status: 'completed', data: [[], [], []] },
  },
]
