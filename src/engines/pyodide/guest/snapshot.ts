import { Buffer } from 'node:buffer'
import { fstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { readExactly, type StartMessage } from './wire.ts'

/** A snapshot begins with the length of its cached code. */
const HEAD_BYTES = 4
/** At the end of a snapshot in a file: the digest by which the host recognizes a damaged one. */
const DIGEST_BYTES = 32

/** The state from which an instance starts. */
export interface Snapshot {
  /** V8's compiled form of Pyodide's JavaScript. */
  readonly cachedCode: Uint8Array
  /** Python's memory, as Pyodide serializes it. */
  readonly memory: Promise<Uint8Array>
}

/** Serializes a snapshot as the host stores it. */
export function snapshotBytes({ cachedCode, memory }: Record<'cachedCode' | 'memory', Uint8Array>): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(cachedCode.length)
  return Buffer.concat([head, cachedCode, memory])
}

/**
 * Opens the snapshot that the host names. The memory is read in the background.
 * @throws Error if it has the wrong shape.
 */
export function openSnapshot(snapshot: StartMessage['snapshot']): Snapshot {
  if (snapshot === null) throw new Error('the start message names no snapshot')
  if ('bytes' in snapshot) return snapshotIn(readExactly(snapshot.bytes) ?? Buffer.alloc(HEAD_BYTES))
  const fd = openSync(snapshot.path, 'r')
  const end = fstatSync(fd).size - DIGEST_BYTES
  const head = Buffer.alloc(HEAD_BYTES)
  readSync(fd, head, 0, HEAD_BYTES, 0)
  const start = HEAD_BYTES + head.readUInt32LE()
  if (start > end) throw new Error('the snapshot is truncated')
  const cachedCode = Buffer.alloc(start - HEAD_BYTES)
  readSync(fd, cachedCode, 0, cachedCode.length, HEAD_BYTES)
  return { cachedCode, memory: readAll(fd, start, end) }
}

/** Reads into a buffer of its own: Pyodide reads aligned words from it. */
async function readAll(fd: number, start: number, end: number): Promise<Uint8Array> {
  const into = Buffer.allocUnsafeSlow(end - start)
  for (let at = 0; at < into.length;) {
    const { bytesRead } = await promisify(read)(fd, into, at, into.length - at, start + at)
    if (bytesRead === 0) throw new Error('the snapshot is truncated')
    at += bytesRead
  }
  return into
}

function snapshotIn(bytes: Buffer): Snapshot {
  const start = HEAD_BYTES + bytes.readUInt32LE()
  return {
    cachedCode: bytes.subarray(HEAD_BYTES, start),
    memory: Promise.resolve(Uint8Array.from(bytes.subarray(start))), // a copy, aligned like the buffer of readAll
  }
}
