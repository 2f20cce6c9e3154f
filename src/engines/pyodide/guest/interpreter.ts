import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { guardBridge } from './bridge.ts'
import type { Pyodide, WasmApi, WasmMemory } from './emscripten.ts'
import { postponeOptimization, setScriptFlags } from './flags.ts'
import { loadProgram } from './program.ts'
import type { Snapshot } from './snapshot.ts'

const PAGE_BYTES = 65_536
/** The number of WebAssembly's memory section. */
const MEMORY_SECTION = 5

/** Options of {@link loadInterpreter}. */
export interface Load {
  /** The limit of Python's memory. */
  readonly maxBytes: number
  /** The snapshot to start from. Without one, the interpreter can make a snapshot. */
  readonly snapshot?: Snapshot
}

/** An interpreter and its parts. */
export interface Interpreter {
  readonly pyodide: Pyodide
  readonly memory: WasmMemory
  /** True if V8 accepted the compiled JavaScript of the snapshot. */
  readonly isFromCache: boolean
  /** The platform of its extension modules, such as `pyemscripten 2026.0`. */
  readonly libc: string
  /** Serializes V8's compiled code of Pyodide's JavaScript so far. */
  readonly createCodeCache: () => Uint8Array
  /** After this, a call to the bridge to JavaScript ends the run. */
  readonly closeBridge: () => void
}

/** Loads Pyodide from the directory of its npm package. Python gets no JavaScript object. */
export async function loadInterpreter(directory: string, { maxBytes, snapshot }: Load): Promise<Interpreter> {
  let memory: WasmMemory | undefined
  let closeBridge: (() => void) | undefined
  // Read while a megabyte of JavaScript is parsed.
  const program = readFile(`${directory}pyodide.asm.wasm`)
  const url = pathToFileURL(directory).href
  const api = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly
  api.instantiateStreaming = async (_response: unknown, imports: unknown) => {
    const bytes = await program
    limitMemory(bytes, Math.floor(maxBytes / PAGE_BYTES))
    closeBridge = guardBridge((imports as { env: Record<string, unknown> }).env)
    const made = await api.instantiate(bytes, imports)
    bytes.buffer.transfer(0) // gives 10 MB back at once; V8 has a copy
    memory = made.instance.exports['memory'] as WasmMemory
    if (snapshot !== undefined) {
      postponeOptimization() // not in the process that makes a snapshot: its flags mark the compiled JavaScript
      growTo(memory, snapshot.heapBytes)
    }
    return made
  }
  const { loadPyodide } = (await import(`${url}pyodide.mjs`)) as {
    loadPyodide: (options: object) => Promise<Pyodide>
  }
  const lock = JSON.parse(readFileSync(`${directory}pyodide-lock.json`, 'utf8')) as { info: { abi_version: string } }
  setScriptFlags() // before any code of Pyodide is compiled, and after Node's own is loaded
  const { create, createCodeCache, isFromCache } = loadProgram(directory, snapshot?.cachedCode)
  const pyodide = await loadPyodide({
    indexURL: url,
    lockFileContents: { info: lock.info, packages: {} }, // nothing is downloaded
    packageBaseUrl: url,
    jsglobals: Object.freeze(Object.create(null) as object),
    env: { HOME: '/tmp', LANG: 'C.UTF-8', USER: 'sandbox', LOGNAME: 'sandbox' },
    createPyodideModule: create,
    ...(snapshot === undefined ? { _makeSnapshot: true } : { _loadSnapshot: loadedBy(snapshot, () => memory) }),
  })
  if (memory === undefined || closeBridge === undefined) throw new Error('Pyodide has no memory')
  const libc = `pyemscripten ${lock.info.abi_version.replace('_', '.')}`
  return { pyodide, memory, createCodeCache, isFromCache, libc, closeBridge }
}

/**
 * A stand-in for the memory that Pyodide serialized. Pyodide asks for the part that follows the head, and copies it into its memory.
 * At that moment the snapshot writes itself there, and the part is empty.
 */
function loadedBy(snapshot: Snapshot, memoryNow: () => WasmMemory | undefined): Uint8Array {
  const { head } = snapshot
  const loaded = Uint8Array.from(head) // aligned: Pyodide reads words from it
  const subarray = (start: number, end?: number): Uint8Array => {
    if (end !== undefined) return head.subarray(start, end)
    const memory = memoryNow()
    if (start !== head.length || memory === undefined)
      throw new Error(
        'this version of Pyodide restores snapshots in another way; install the one that Sandglass supports',
      )
    snapshot.restore(new Uint8Array(memory.buffer))
    return new Uint8Array()
  }
  return Object.defineProperty(loaded, 'subarray', { value: subarray })
}

function growTo(memory: WasmMemory, bytes: number): void {
  const pages = Math.ceil((bytes - memory.buffer.byteLength) / PAGE_BYTES)
  if (pages > 0) memory.grow(pages)
}

/** Replaces the declared maximum of the memory, in the same number of bytes. */
function limitMemory(bytes: Uint8Array, pages: number): void {
  let at = 8
  const number = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at] ?? 0
      at += 1
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const section = number()
    const size = number()
    if (section !== MEMORY_SECTION) {
      at += size
      continue
    }
    number() // count of memories
    const flags = number()
    number() // initial pages
    const start = at
    const declared = number()
    if ((flags & 1) === 0) break
    const width = at - start
    const limit = Math.min(pages, declared)
    for (let n = 0; n < width; n += 1) {
      const rest = Math.floor(limit / 2 ** (7 * n)) & 0x7f
      bytes[start + n] = n === width - 1 ? rest : rest | 0x80
    }
    return
  }
  throw new Error('this version of Pyodide declares no memory limit; install the version that Sandglass supports')
}
