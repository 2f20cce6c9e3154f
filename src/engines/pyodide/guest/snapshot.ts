import { Buffer } from 'node:buffer'
import { fstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { readExactly, type StartMessage } from './wire.ts'

/** Behind a snapshot in a file: what the host tells a damaged one by. */
const DIGEST_BYTES = 32
const HEAD_BYTES = 4

/** What an instance goes on from. */
export interface Snapshot {
  /** What V8 made of Pyodide's JavaScript. */
  readonly compiled: Uint8Array
  /** Python's memory, as Pyodide writes it down. */
  readonly memory: Promise<Uint8Array>
}

/** A snapshot as the host keeps it: the length of the compiled code, the code, the memory. */
export function snapshotBytes(compiled: Uint8Array, memory: Uint8Array): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(compiled.length)
  return Buffer.concat([head, compiled, memory])
}

/**
 * Opens what the host named. The memory, which is larger by far, is read beside what follows.
 * @throws Error when there is nothing of that shape.
 */
export function openSnapshot(snapshot: StartMessage['snapshot']): Snapshot {
  if (snapshot === null) throw new Error('no snapshot is given')
  if ('bytes' in snapshot) return parts(readExactly(snapshot.bytes) ?? new Uint8Array())
  const fd = openSync(snapshot.path, 'r')
  const end = fstatSync(fd).size - DIGEST_BYTES
  const head = Buffer.alloc(HEAD_BYTES)
  readSync(fd, head, 0, HEAD_BYTES, 0)
  const start = HEAD_BYTES + head.readUInt32LE()
  if (start > end) throw new Error('the snapshot is cut off')
  const compiled = Buffer.alloc(start - HEAD_BYTES)
  readSync(fd, compiled, 0, compiled.length, HEAD_BYTES)
  const memory = Buffer.allocUnsafeSlow(end - start)
  return { compiled, memory: readAll(fd, memory, start) }
}

async function readAll(fd: number, into: Uint8Array, position: number): Promise<Uint8Array> {
  for (let at = 0; at < into.length;) {
    const { bytesRead } = await promisify(read)(fd, into, at, into.length - at, position + at)
    if (bytesRead === 0) throw new Error('the snapshot is cut off')
    at += bytesRead
  }
  return into
}

function parts(bytes: Uint8Array): Snapshot {
  const start = HEAD_BYTES + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readUInt32LE()
  return { compiled: bytes.subarray(HEAD_BYTES, start), memory: Promise.resolve(bytes.subarray(start)) }
}
