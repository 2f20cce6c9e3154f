import { Buffer } from 'node:buffer'

/**
 * Built-in modules that give access to memory and functions by address or to JavaScript, and CPython's own tests.
 */
const REMOVED = [
  '_ctypes',
  '_pyodide_core',
  '_posixsubprocess',
  '_remote_debugging',
  '_testbuffer',
  '_testcapi',
  '_testclinic',
  '_testclinic_limited',
  '_testinternalcapi',
  '_testlimitedcapi',
  '_xxtestfuzz',
]

/** An upper bound of the length of the function table. */
const MAX_FUNCTIONS = 200_000
const WORD = 4

/**
 * Removes modules from Python's table of built-in modules and from its copy. Each row is the address of a name and the number of
 * a function. No import finds the modules afterwards; one that is already imported stays until it is removed from `sys.modules`.
 * Called before a snapshot is taken, so that it costs instances nothing.
 * @throws Error if a module is not found, because this Pyodide is then of another build.
 */
export function removeBuiltinModules(heap: Uint8Array): void {
  const memory = Buffer.from(heap.buffer, heap.byteOffset, heap.byteLength)
  const words = new Uint32Array(heap.buffer, heap.byteOffset, Math.floor(heap.byteLength / WORD))
  const addresses = new Map<number, string>()
  for (const name of REMOVED) {
    const wanted = Buffer.from(`${name}\0`)
    for (let at = memory.indexOf(wanted); at !== -1; at = memory.indexOf(wanted, at + 1)) addresses.set(at, name)
  }
  const [lowest, highest] = [Math.min(...addresses.keys()), Math.max(...addresses.keys())]
  const empty = memory.indexOf(0, 1024)
  const removed = new Set<string>()
  for (let row = 2; row + 3 < words.length; row += 1) {
    const address = words[row] ?? 0
    if (address < lowest || address > highest) continue
    const name = addresses.get(address)
    if (
      name === undefined ||
      !isRow(memory, words, row) ||
      !(isRow(memory, words, row - 2) || isRow(memory, words, row + 2))
    )
      continue
    words[row] = empty
    words[row + 1] = 0
    removed.add(name)
  }
  const missed = REMOVED.filter((name) => !removed.has(name))
  if (missed.length > 0)
    throw new Error(
      `not found among the built-in modules: ${missed.join(', ')}; install the version of Pyodide that Sandglass supports`,
    )
}

/** True if the two words look like the address of a module's name and the number of a function. */
function isRow(memory: Buffer, words: Uint32Array, row: number): boolean {
  const [address = 0, number = 0] = words.subarray(row, row + 2)
  if (number === 0 || number > MAX_FUNCTIONS) return number === 0 && memory[address] === 0 && address !== 0
  const text = memory.subarray(address, address + 24).toString('latin1')
  return /^[A-Za-z_][A-Za-z0-9_]*\0/.test(text) || (address !== 0 && text.startsWith('\0'))
}
