import { Buffer } from 'node:buffer'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { readExactly, type StartMessage } from './wire.ts'

/** A snapshot begins with the length of its cached code; a layout begins with its own length. */
const LENGTH_BYTES = 4
/** At the end of a snapshot in a file: the digest by which the host recognizes a damaged one. */
const DIGEST_BYTES = 32
/** The unit of WebAssembly's memory. */
const PAGE_BYTES = 65_536
const ZEROS = Buffer.alloc(PAGE_BYTES)

/** The state from which an instance starts. */
export interface Snapshot {
  /** V8's compiled form of Pyodide's JavaScript. */
  readonly cachedCode: Uint8Array
  /** The head of the memory as Pyodide serializes it. */
  readonly head: Uint8Array
  /** The length of Python's memory. */
  readonly heapBytes: number
  /** Writes Python's memory into that of a new instance. Called once. */
  readonly restore: (heap: Uint8Array) => void
}

/** The parts that follow the cached code: the head, and the ranges of the memory that are not zero, one after the other. */
interface Layout {
  readonly headBytes: number
  readonly heapBytes: number
  readonly ranges: readonly (readonly [start: number, end: number])[]
}

/**
 * Serializes a snapshot as the host stores it. Pages of zeros are left out: half of the memory is room for the stack and the
 * heap, in which a new instance has not written yet.
 * @param memory as Pyodide serializes it: a head, whose second word is its length, and Python's memory.
 */
export function snapshotBytes({ cachedCode, memory }: Record<'cachedCode' | 'memory', Uint8Array>): Uint8Array {
  const headBytes = new DataView(memory.buffer, memory.byteOffset).getUint32(4, true)
  const heap = memory.subarray(headBytes)
  const layout: Layout = { headBytes, heapBytes: heap.length, ranges: rangesOf(heap) }
  const parts = layout.ranges.map(([start, end]) => heap.subarray(start, end))
  const described = Buffer.from(JSON.stringify(layout))
  const head = memory.subarray(0, headBytes)
  return Buffer.concat([lengthOf(cachedCode), cachedCode, lengthOf(described), described, head, ...parts])
}

function lengthOf({ length }: Uint8Array): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES)
  bytes.writeUInt32LE(length)
  return bytes
}

/** The ranges of pages that are not all zero. */
function rangesOf(heap: Uint8Array): (readonly [number, number])[] {
  const ranges: [number, number][] = []
  for (let start = 0; start < heap.length; start += PAGE_BYTES) {
    const page = heap.subarray(start, start + PAGE_BYTES)
    if (ZEROS.subarray(0, page.length).equals(page)) continue
    const last = ranges.at(-1)
    if (last?.[1] === start) last[1] += page.length
    else ranges.push([start, start + page.length])
  }
  return ranges
}

/** Reads the bytes at a place of a snapshot. @throws Error if it is shorter. */
type ReadInto = (into: Uint8Array, at: number) => void

/**
 * Opens the snapshot that the host names.
 * @throws Error if it has the wrong shape.
 */
export function openSnapshot(snapshot: StartMessage['snapshot']): Snapshot {
  if (snapshot === null) throw new Error('the start message names no snapshot')
  if ('bytes' in snapshot) {
    const bytes = readExactly(snapshot.bytes) ?? new Uint8Array()
    const readBytes: ReadInto = (into, at) => into.set(bytes.subarray(at, at + into.length))
    return parse(bytes.length, readBytes, () => undefined)
  }
  const fd = openSync(snapshot.path, 'r')
  const readFile: ReadInto = (into, at) => {
    for (let done = 0; done < into.length;) {
      const count = readSync(fd, into, done, into.length - done, at + done)
      if (count === 0) throw new Error('the snapshot is truncated')
      done += count
    }
  }
  return parse(fstatSync(fd).size - DIGEST_BYTES, readFile, () => closeSync(fd))
}

function parse(size: number, readInto: ReadInto, close: () => void): Snapshot {
  let at = 0
  const take = (length: number): Buffer => {
    if (at + length > size) throw new Error('the snapshot is truncated')
    const bytes = Buffer.alloc(length)
    readInto(bytes, at)
    at += length
    return bytes
  }
  const cachedCode = take(take(LENGTH_BYTES).readUInt32LE())
  const layout = JSON.parse(take(take(LENGTH_BYTES).readUInt32LE()).toString()) as Layout
  const head = take(layout.headBytes)
  const start = at
  const length = layout.ranges.reduce((sum, [from, to]) => sum + to - from, 0)
  if (start + length > size) throw new Error('the snapshot is truncated')
  /** Reads from the file into Python's memory: a buffer between them would cost its pages and their copy. */
  const restore = (heap: Uint8Array): void => {
    if (heap.length < layout.heapBytes)
      throw new Error('the memory of the instance is smaller than that of the snapshot')
    let from = start
    for (const [first, end] of layout.ranges) {
      readInto(heap.subarray(first, end), from)
      from += end - first
    }
    close()
  }
  return { cachedCode, head, heapBytes: layout.heapBytes, restore }
}
