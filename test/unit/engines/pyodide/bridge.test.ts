import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { guardBridge } from '../../../../src/engines/pyodide/guest/bridge.ts'
import { findPyodideDirectory } from '../../../../src/engines/pyodide/package-dir.ts'

interface ModuleImport {
  readonly name: string
  readonly kind: string
}
const { Module } = (
  globalThis as unknown as {
    WebAssembly: { Module: (new (bytes: Uint8Array) => object) & { imports(module: object): ModuleImport[] } }
  }
).WebAssembly

/** The names of the functions that the interpreter imports from JavaScript. */
const listImports = (): string[] =>
  Module.imports(new Module(readFileSync(`${findPyodideDirectory()}pyodide.asm.wasm`)))
    .filter(({ kind }) => kind === 'function')
    .map(({ name }) => name)

const words = (text: string): string[] => text.trim().split(/\s+/)

/** All imports that a script can make WebAssembly call. A new name needs a guard or a review. */
const OPEN: readonly string[] = [
  // Passes the exit code to the guest.
  ...words(`JsvError_Check JsvNoValue_Check JsvNum_fromInt`),
  // Operations on sockets: they report that no socket supports the operation, and the call fails.
  ...words(
    `_maybe_connect_async _maybe_poll_async _maybe_recvfrom_async _maybe_sendto_async _try_fcntl64 _try_shutdown`,
  ),
  // CPython's own: the clock of signals; calls of functions in WebAssembly's table; the name of a browser, which is empty.
  ...words(`_Py_CheckEmscriptenSignals_Helper _PyEM_TrampolineCall_JS _Py_emscripten_runtime`),
  // Functions that end the run.
  ...words(`__assert_fail _abort_js exit proc_exit _emscripten_runtime_keepalive_clear`),
  ...words(`emscripten_runtime_keepalive_pop emscripten_runtime_keepalive_push`),
  // Clocks, time zones, random numbers, the given environment: numbers and text go into memory.
  ...words(`_gmtime_js _localtime_js _mktime_js _timegm_js _tzset_js clock_res_get clock_time_get emscripten_date_now`),
  ...words(`emscripten_get_now random_get environ_get environ_sizes_get _emscripten_get_progname`),
  // Memory and files in memory.
  ...words(`_mmap_js _msync_js _munmap_js emscripten_get_heap_max emscripten_resize_heap`),
  ...words(`fd_close fd_fdstat_get fd_pread fd_pwrite fd_read fd_seek fd_sync fd_write`),
  // Signals: handlers are functions in WebAssembly's table; timers of the realm are gone.
  ...words(`__call_sighandler _setitimer_js`),
  // Extension modules, which the realm admits by their digest; a promise is a number here.
  ...words(`_dlopen_js _dlsym_js _emscripten_dlopen_js`),
  ...words(`emscripten_promise_create emscripten_promise_destroy emscripten_promise_resolve`),
  // Names and protocols from tables of Emscripten's own; programs are refused.
  ...words(`_emscripten_lookup_name _emscripten_system getaddrinfo getnameinfo getprotobyname`),
  // Output to a disabled console.
  ...words(`_emscripten_log_formatted emscripten_debugger emscripten_log_impl_js`),
]

test('the interpreter has only imports that are known not to be a bridge', () => {
  const functions: Record<string, unknown> = Object.fromEntries(listImports().map((name) => [name, () => 'called']))
  guardBridge(functions)()
  const open = Object.entries(functions).filter(([, call]) => {
    try {
      return (call as () => unknown)() === 'called'
    } catch {
      return false
    }
  })
  const others = open.map(([name]) => name).filter((name) => !name.startsWith('__syscall_'))
  expect(others.toSorted()).toEqual(OPEN.toSorted())
})

test('the bridge answers until it is closed', () => {
  const given = Object.assign((text: unknown) => `given ${String(text)}`, { sig: 'ee' })
  const functions: Record<string, unknown> = { JsvObject_toString: given }
  const shut = guardBridge(functions)
  const door = functions['JsvObject_toString'] as typeof given
  expect([door('x'), door.sig]).toEqual(['given x', 'ee'])
  shut()
  expect(() => door('x')).toThrow('the bridge to JavaScript is disabled (JsvObject_toString)')
})
