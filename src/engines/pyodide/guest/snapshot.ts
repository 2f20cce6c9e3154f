import { Buffer } from 'node:buffer'
import { fstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { HEAD_BYTES, partsOf } from './snapshot-parts.ts'
import { readExactly, type StartMessage } from './wire.ts'

/** Behind a snapshot in a file: what the host tells a damaged one by. */
const DIGEST_BYTES = 32

/** What an instance goes on from. */
export interface Snapshot {
  /** What V8 made of Pyodide's JavaScript. */
  readonly compiled: Uint8Array
  /** What it made of WebAssembly, as far as scripts use it; empty when there is none. */
  readonly machineCode: Promise<ArrayBuffer>
  /** Python's memory, as Pyodide writes it down. */
  readonly memory: Promise<Uint8Array>
}

/**
 * Opens what the host named. What is large is read beside what follows.
 * @throws Error when there is nothing of that shape.
 */
export function openSnapshot(snapshot: StartMessage['snapshot']): Snapshot {
  if (snapshot === null) throw new Error('no snapshot is given')
  if ('bytes' in snapshot) return snapshotIn(readExactly(snapshot.bytes) ?? Buffer.alloc(HEAD_BYTES))
  const fd = openSync(snapshot.path, 'r')
  const end = fstatSync(fd).size - DIGEST_BYTES
  const head = Buffer.alloc(HEAD_BYTES)
  readSync(fd, head, 0, HEAD_BYTES, 0)
  const at = partsOf(head)
  if (at.memory > end) throw new Error('the snapshot is cut off')
  const compiled = Buffer.alloc(at.machineCode - at.compiled)
  readSync(fd, compiled, 0, compiled.length, at.compiled)
  return {
    compiled,
    machineCode: readAll(fd, at.machineCode, at.memory).then(({ buffer }) => buffer),
    memory: readAll(fd, at.memory, end),
  }
}

/** Into a buffer of its own. */
async function readAll(fd: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
  const into = Buffer.allocUnsafeSlow(end - start)
  for (let at = 0; at < into.length;) {
    const { bytesRead } = await promisify(read)(fd, into, at, into.length - at, start + at)
    if (bytesRead === 0) throw new Error('the snapshot is cut off')
    at += bytesRead
  }
  return into
}

function snapshotIn(bytes: Buffer): Snapshot {
  const at = partsOf(bytes)
  return {
    compiled: bytes.subarray(at.compiled, at.machineCode),
    machineCode: Promise.resolve(Uint8Array.from(bytes.subarray(at.machineCode, at.memory)).buffer),
    memory: Promise.resolve(Uint8Array.from(bytes.subarray(at.memory))), // where Pyodide reads words, at its beginning
  }
}
