import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { doorsOf } from './bridge.ts'
import type { Pyodide, WasmApi, WasmMemory } from './emscripten.ts'
import { moduleOf, type WasmModule } from './machine-code.ts'
import { loadProgram } from './program.ts'
import type { Snapshot } from './snapshot.ts'

const PAGE_BYTES = 65_536
/** WebAssembly's section of memories. */
const MEMORY_SECTION = 5

/** How an interpreter is to be made. */
export interface Load {
  /** Python's memory never grows beyond it. */
  readonly maxBytes: number
  /** To go on from; without one, a snapshot can be made of it. */
  readonly snapshot?: Snapshot
}

/** An interpreter, and what it is made of. */
export interface Interpreter {
  readonly pyodide: Pyodide
  readonly memory: WasmMemory
  /** Whether V8 took the compiled JavaScript of the snapshot. */
  readonly isFromCache: boolean
  /** Whether V8 took the machine code of the snapshot. */
  readonly hasMachineCode: boolean
  /** What V8 made of Pyodide's JavaScript so far. */
  readonly compiled: () => Uint8Array
  readonly module: WasmModule
  /** From then on a call of the bridge to JavaScript ends the run. */
  readonly shutBridge: () => void
}

/** Loads Pyodide from the directory of its npm package. Python has no object of JavaScript afterwards. */
export async function loadInterpreter(directory: string, { maxBytes, snapshot }: Load): Promise<Interpreter> {
  let memory: WasmMemory | undefined
  let module: WasmModule | undefined
  let hasMachineCode = false
  let shutBridge: (() => void) | undefined
  // Read beside the parsing of a megabyte of JavaScript.
  const program = readFile(`${directory}pyodide.asm.wasm`)
  const url = pathToFileURL(directory).href
  const api = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly
  api.instantiateStreaming = async (_response: unknown, imports: unknown) => {
    const bytes = await program
    limitMemory(bytes, Math.floor(maxBytes / PAGE_BYTES))
    shutBridge = doorsOf((imports as { env: Record<string, unknown> }).env)
    const ready = snapshot === undefined ? undefined : moduleOf(await snapshot.machineCode, bytes)
    hasMachineCode = ready !== undefined
    module = ready ?? (await api.compile(bytes))
    const instance = await api.instantiate(module, imports)
    memory = instance.exports['memory'] as WasmMemory
    if (snapshot !== undefined) growTo(memory, heapBytesOf(await snapshot.memory))
    return { instance, module }
  }
  const { loadPyodide } = (await import(`${url}pyodide.mjs`)) as {
    loadPyodide: (options: object) => Promise<Pyodide>
  }
  const lock = JSON.parse(readFileSync(`${directory}pyodide-lock.json`, 'utf8')) as { info: unknown }
  const { create, compiled, isFromCache } = loadProgram(directory, snapshot?.compiled)
  const pyodide = await loadPyodide({
    indexURL: url,
    lockFileContents: { info: lock.info, packages: {} }, // none is ever fetched
    packageBaseUrl: url,
    jsglobals: Object.freeze(Object.create(null) as object),
    env: { HOME: '/tmp', LANG: 'C.UTF-8', USER: 'sandbox', LOGNAME: 'sandbox' },
    createPyodideModule: create,
    ...(snapshot === undefined ? { _makeSnapshot: true } : { _loadSnapshot: snapshot.memory }),
  })
  if (memory === undefined || module === undefined || shutBridge === undefined)
    throw new Error('Pyodide made no memory')
  return { pyodide, memory, compiled, isFromCache, hasMachineCode, module, shutBridge }
}

/** A snapshot is a head, whose second word says how long it is, and the memory. */
function heapBytesOf(snapshot: Uint8Array): number {
  return snapshot.length - new DataView(snapshot.buffer, snapshot.byteOffset).getUint32(4, true)
}

function growTo(memory: WasmMemory, bytes: number): void {
  const pages = Math.ceil((bytes - memory.buffer.byteLength) / PAGE_BYTES)
  if (pages > 0) memory.grow(pages)
}

/** Writes another maximum over the one that is declared, in as many bytes. */
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
    number() // how many memories
    const flags = number()
    number() // pages at first
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
  throw new Error('this Pyodide declares no limit of memory')
}
