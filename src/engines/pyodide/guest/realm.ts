import { createHash, randomFillSync } from 'node:crypto'
import { readFileSync } from 'node:fs'

type Globals = Record<string, unknown>

/** The names in the global object that Pyodide and the language need while a script runs. All others are deleted. */
const KEPT: ReadonlySet<string> = new Set(
  `
    Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol Date Promise
    RegExp Error AggregateError EvalError RangeError Iterator ReferenceError SyntaxError TypeError URIError JSON
    Math Intl ArrayBuffer Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array Float32Array
    Float64Array Float16Array Uint8ClampedArray BigUint64Array BigInt64Array DataView Map BigInt Set WeakMap WeakSet
    WeakRef Proxy Reflect FinalizationRegistry decodeURI decodeURIComponent encodeURI encodeURIComponent escape
    unescape isFinite isNaN globalThis SuppressedError DisposableStack AsyncDisposableStack WebAssembly TextDecoder
    TextEncoder crypto performance console
  `
    .trim()
    .split(/\s+/),
)

/**
 * Makes this process look like a browser's worker to Pyodide, so that its closures hold neither `require` nor `fs` nor `process`,
 * which a script might reach through them.
 */
export function hideNode(): void {
  const globals = globalThis as unknown as Globals
  for (const name of ['process', 'require', 'module', 'navigator', 'Buffer', 'MessageChannel', 'WebSocket']) {
    delete globals[name]
  }
  const set = (name: string, value: unknown): void => {
    Object.defineProperty(globals, name, { value, configurable: true, writable: true, enumerable: false })
  }
  set('self', globals)
  set('WorkerGlobalScope', { [Symbol.hasInstance]: () => true })
  set('location', 'file:///')
  set('crypto', { getRandomValues: (view: Uint8Array) => randomFillSync(view) })
  const quiet = (): void => undefined
  set('console', { log: quiet, warn: quiet, error: quiet, info: quiet, debug: quiet })
  set('performance', { now: performance.now.bind(performance) })
  set('fetch', (from: unknown) => Promise.resolve(fileAsResponse(String(from))))
}

/** Pyodide fetches only its own files, by URL. A file is read only when its content is asked for; that of the WebAssembly never is. */
function fileAsResponse(url: string): unknown {
  const read = (): Buffer => readFileSync(new URL(url))
  return {
    ok: true,
    json: () => Promise.resolve(JSON.parse(read().toString('utf8')) as unknown),
    arrayBuffer: () => {
      const bytes = read()
      return Promise.resolve(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
    },
  }
}

/**
 * Deletes what a script that escapes from Python must not reach. Refuses new WebAssembly except the modules with these digests, and
 * removes functions from the stacks of errors.
 */
export function closeRealm(modules: readonly string[]): void {
  const globals = globalThis as unknown as Globals
  const allowed = new Set(modules)
  const { Module, Instance, Table, Memory, Global, RuntimeError, CompileError, LinkError, Tag, Exception } = globals[
    'WebAssembly'
  ] as Record<string, new (...args: unknown[]) => object>
  class KnownModule {
    constructor(bytes: Uint8Array) {
      // A copy, so that the verified bytes are the compiled ones.
      const copy = Uint8Array.from(bytes)
      const digest = createHash('sha256').update(copy).digest('hex')
      if (!allowed.has(digest) || Module === undefined)
        throw new TypeError('this WebAssembly module is not from a wheel')
      return new Module(copy)
    }
    static [Symbol.hasInstance](value: unknown): boolean {
      return Module !== undefined && value instanceof Module
    }
    static customSections(module: unknown, name: string): unknown {
      return (Module as unknown as { customSections(module: unknown, name: string): unknown }).customSections(
        module,
        name,
      )
    }
  }
  for (const name of Reflect.ownKeys(globals)) {
    if (typeof name === 'string' && KEPT.has(name)) continue
    if (!Reflect.deleteProperty(globals, name)) throw new Error(`${String(name)} cannot be deleted`)
  }
  const rest = {
    Module: KnownModule,
    Instance,
    Table,
    Memory,
    Global,
    RuntimeError,
    CompileError,
    LinkError,
    Tag,
    Exception,
  }
  Object.defineProperty(globals, 'WebAssembly', { value: Object.freeze(rest) })
  Object.defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false })
}
