/** What a call of one of the bridge's functions by WebAssembly comes to, once it is shut. */
const REFUSAL = 'the bridge to JavaScript is shut'

/**
 * The functions of Pyodide's bridge that WebAssembly imports: with them Python makes, reads, changes and calls objects of
 * JavaScript. Types of the bridge stay in Python for good, and with them ways to ask for such an object.
 */
const BRIDGE = /^_?(Js[A-Z]|js2python|python2js|pyproxy_new|raw_call|create_promise|wrap_(async_)?generator|ffi_)/

/** Those that Python's answer to the guest's own code takes: they make a number or a text of it, and look what it is. */
const PLAIN = /^(JsvNum_fromInt|JsvNum_fromDouble|JsvUTF8ToString|Jsv\w+_Check)$/

type Imports = Record<string, unknown>

/** Puts a door before each function of the bridge. Returns what shuts them all, for good. */
export function doorsOf(functions: Imports): () => void {
  let shut = false
  let found = 0
  for (const [name, value] of Object.entries(functions)) {
    if (!BRIDGE.test(name) || PLAIN.test(name) || typeof value !== 'function') continue
    const given = value as (...args: unknown[]) => unknown
    const door = (...args: unknown[]): unknown => {
      if (shut) throw new Error(`${REFUSAL} (${name})`)
      return given(...args)
    }
    functions[name] = Object.assign(door, given) // Emscripten keeps a function's signature on it
    found += 1
  }
  if (found === 0) throw new Error('this Pyodide has another bridge than the one that is known')
  return () => void (shut = true)
}
