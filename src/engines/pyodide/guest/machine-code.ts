import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'

/** A module of WebAssembly, which has no type in Node's. */
export type WasmModule = object

const SERIALIZE = '((module) => %SerializeWasmModule(module))'
const DESERIALIZE = '((code, bytes) => %DeserializeWasmModule(code, bytes))'

/** From here on V8 optimises each function of WebAssembly when it is called first, instead of when it was called often. */
export function optimizeAtOnce(): void {
  setFlagsFromString('--no-liftoff')
  setFlagsFromString('--no-wasm-dynamic-tiering')
}

/**
 * The optimised functions of a module, for {@link moduleOf} of another process of the same Node with the same flags.
 * @throws Error where this V8 gives none.
 */
export function machineCodeOf(module: WasmModule): Uint8Array {
  // V8 takes code only where the flags are the same as where it was made.
  setFlagsFromString('--liftoff')
  setFlagsFromString('--wasm-dynamic-tiering')
  const serialize = ofV8(SERIALIZE) as (module: WasmModule) => ArrayBuffer | undefined
  const code = serialize(module)
  if (code === undefined || code.byteLength === 0) throw new Error('V8 gave no machine code')
  return new Uint8Array(code)
}

/**
 * A module with functions that are compiled already; the others are compiled when they are called, as usual. Undefined where
 * V8 does not take the code (of another version, with other flags, for another processor) or has no way to take any.
 */
export function moduleOf(code: ArrayBuffer, bytes: Uint8Array): WasmModule | undefined {
  if (code.byteLength === 0) return undefined
  try {
    const deserialize = ofV8(DESERIALIZE) as (code: ArrayBuffer, bytes: Uint8Array) => WasmModule | undefined
    return deserialize(code, bytes)
  } catch {
    return undefined
  }
}

/** Node has no interface to compiled WebAssembly: these are functions of V8's own tests, open for this one script alone. */
function ofV8(source: string): unknown {
  setFlagsFromString('--allow-natives-syntax')
  try {
    return new Script(source).runInThisContext()
  } finally {
    setFlagsFromString('--no-allow-natives-syntax')
  }
}
