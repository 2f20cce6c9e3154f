import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SandboxEngine } from '../../../../src/sandbox/index.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, runOn } from './fixture.ts'

const cache = sharedCache()
let engine: SandboxEngine
beforeAll(() => void (engine = engineAt(cache.path)))
afterAll(() => cache[Symbol.dispose]())

test('no import leads to JavaScript or to memory by address', async () => {
  const script = `
import _imp, importlib, importlib.util, sys
names = ['js', 'pyodide', 'pyodide.code', 'pyodide.ffi', 'pyodide.http', 'pyodide_js', '_pyodide', '_pyodide._base',
         '_pyodide_core', '_ctypes', 'ctypes', '_testcapi', '_testinternalcapi', '_posixsubprocess']
found = []
for name in names:
    for how in (__import__, importlib.import_module):
        try:
            how(name)
            found.append(name)
        except ImportError:
            pass
    if _imp.is_builtin(name):
        found.append('builtin ' + name)
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != '_NoBridges']
# Its Python parts are in the library; without the bridge they have no effect.
for call in ("import pyodide.code as c; c.run_js('1')", "import pyodide_js", "import js",
             "from pyodide.http import open_url; open_url('http://127.0.0.1:9/')"):
    try:
        exec(call)
        found.append(call)
    except Exception:
        pass
emit_result(sorted(set(found)))
`
  expect(await runOn(engine, script)).toMatchObject({ error: null, finalData: [] })
})

test('no object of JavaScript is among all objects of the interpreter', async () => {
  const script = `
import gc, sys
gc.unfreeze()
seen, pending, found = set(), list(gc.get_objects()), []
while pending:
    thing = pending.pop()
    if id(thing) in seen:
        continue
    seen.add(id(thing))
    if type(type(thing)).__name__ == '_JsProxyMetaClass':
        found.append(repr(type(thing)))
    pending.extend(gc.get_referents(thing))
emit_result([len(seen) > 10_000, found])
`
  expect(await runOn(engine, script)).toMatchObject({ error: null, finalData: [true, []] })
})

test('what only the bridge to JavaScript held is gone, also among frozen objects', async () => {
  const script = `
import gc
frozen = gc.get_freeze_count()
gc.unfreeze()
unreachable = gc.collect()
classes = {f'{kind.__module__}.{kind.__name__}' for kind in gc.get_objects() if isinstance(kind, type)}
emit_result([frozen > 1000, unreachable, sorted(classes & {'pyodide.webloop.WebLoop', '_pyodide._importhook.JsLoader'})])
`
  expect(await runOn(engine, script)).toMatchObject({ error: null, finalData: [true, 0, []] })
})

test('the file system holds Python only, and only the four directories can be written', async () => {
  const script = `
import os
written = []
for base, directories, _ in os.walk('/'):
    for way in (lambda: open(base + '/probe', 'w').close(), lambda: os.mkdir(base + '/probe.d'),
                lambda: os.symlink('/', base + '/probe.l'), lambda: os.chmod(base, 0o700)):
        try:
            way()
            written.append(base)
        except OSError:
            pass
emit_result([sorted(set(written)), sorted(os.listdir('/')), sorted(os.environ)])
`
  expect((await runOn(engine, script)).finalData).toEqual([
    ['/dev/shm', '/tmp', '/var/tmp', '/workspace'],
    ['dev', 'lib', 'proc', 'tmp', 'var', 'workspace'],
    ['HOME', 'LANG', 'LOGNAME', 'MPLBACKEND', 'PATH', 'USER'],
  ])
})

test('programs, threads, sockets and the network are out of reach', async () => {
  const script = `
import os, socket, subprocess, threading, urllib.request
def refused(call):
    try:
        call()
    except (OSError, RuntimeError, AttributeError, ImportError):
        return True
    return False
def connect():
    s = socket.socket()
    s.settimeout(1)
    s.connect(('127.0.0.1', 9))
    s.send(b'x')
emit_result([refused(lambda: subprocess.run(['true'])), refused(lambda: os.fork()),
             os.system('true') != 0, refused(lambda: threading.Thread(target=print).start()), refused(connect),
             refused(lambda: urllib.request.urlopen('http://127.0.0.1:9/'))])
`
  expect(await runOn(engine, script)).toMatchObject({ error: null, finalData: [true, true, true, true, true, true] })
})

test('foreign WebAssembly cannot be loaded as an extension module', async () => {
  const script = `
import importlib.machinery, importlib.util
open('evil.so', 'wb').write(bytes.fromhex('0061736d01000000'))
loader = importlib.machinery.ExtensionFileLoader('evil', '/workspace/evil.so')
try:
    importlib.util.module_from_spec(importlib.util.spec_from_file_location('evil', '/workspace/evil.so', loader=loader))
    emit_result('loaded')
except ImportError as error:
    emit_result('refused')
`
  expect((await runOn(engine, script)).finalData).toBe('refused')
})
