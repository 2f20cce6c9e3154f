import { Buffer } from 'node:buffer'

/** The lengths of its first two parts. */
export const HEAD_BYTES = 8

/** Where the parts of a snapshot lie, of which the head is given: compiled JavaScript, machine code, Python's memory. */
export function partsOf(head: Buffer): {
  readonly compiled: number
  readonly machineCode: number
  readonly memory: number
} {
  const machineCode = HEAD_BYTES + head.readUInt32LE()
  return { compiled: HEAD_BYTES, machineCode, memory: machineCode + head.readUInt32LE(4) }
}

/** A snapshot as the host keeps it; machine code comes later, if at all. */
export function snapshotBytes(compiled: Uint8Array, memory: Uint8Array): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(compiled.length)
  return Buffer.concat([head, compiled, memory])
}

/** The same snapshot, which had no machine code, with some. */
export function withMachineCode(snapshot: Uint8Array, code: Uint8Array): Uint8Array {
  const head = Buffer.from(snapshot.subarray(0, HEAD_BYTES))
  const { machineCode } = partsOf(head)
  head.writeUInt32LE(code.length, 4)
  return Buffer.concat([head, snapshot.subarray(HEAD_BYTES, machineCode), code, snapshot.subarray(machineCode)])
}
