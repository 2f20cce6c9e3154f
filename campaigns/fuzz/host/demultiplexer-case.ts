import { strictEqual } from 'node:assert/strict'
import { Demultiplexer, type StreamName } from '../../../src/engines/docker/demultiplexer.ts'
import { HARNESS_CORPUS } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedLine } from '../lines.ts'
import { cut, mutatedBytes } from '../mutate-bytes.ts'
import type { Random } from '../../../test/support/random.ts'

/** The bytes of both streams of a container's connection; undefined if the framing is invalid. */
type Streams = { readonly stdout: string; readonly stderr: string; readonly isWhole: boolean } | undefined

/** Interleaved streams are separated by their headers, wherever they are cut; an invalid header is refused. */
export function demultiplexerCase(random: Random): FuzzCase {
  const bytes = connection(random)
  const pieces = cut(bytes, random)
  return {
    property: 'streams are told apart by their headers alone, and anything else is refused',
    pieces,
    check: () => strictEqual(JSON.stringify(takenApart(pieces)), JSON.stringify(read(bytes))),
  }
}

function connection(random: Random): Buffer {
  const frames = Array.from({ length: random.between(1, 8) }, () => {
    const payload = random.oneIn(6) ? Buffer.alloc(0) : mutatedLine(HARNESS_CORPUS, random).subarray(0, 4096)
    const header = Buffer.from([random.oneIn(40) ? random.below(4) : random.between(1, 2), 0, 0, 0, 0, 0, 0, 0])
    header.writeUInt32BE(random.oneIn(40) ? random.next() : payload.length, 4)
    return Buffer.concat([header, payload])
  })
  const bytes = Buffer.concat(frames)
  return random.oneIn(3) ? mutatedBytes(bytes, Buffer.concat(frames.toReversed()), random) : bytes
}

function takenApart(pieces: readonly Uint8Array[]): Streams {
  const demultiplexer = new Demultiplexer()
  const bytes: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] }
  try {
    for (const piece of pieces) for (const { stream, data } of demultiplexer.push(piece)) bytes[stream].push(data)
  } catch {
    return undefined
  }
  const hex = (name: StreamName): string => Buffer.concat(bytes[name]).toString('hex')
  return { stdout: hex('stdout'), stderr: hex('stderr'), isWhole: demultiplexer.isWhole }
}

/** A reference implementation from the description of Docker's API, which has all bytes at once. */
function read(bytes: Buffer): Streams {
  const streams = { 1: '', 2: '' }
  let at = 0
  while (at + 8 <= bytes.length) {
    const kind = bytes.readUInt8(at)
    if ((kind !== 1 && kind !== 2) || bytes.readUIntBE(at + 1, 3) !== 0) return undefined
    const end = at + 8 + bytes.readUInt32BE(at + 4)
    streams[kind] += bytes.subarray(at + 8, end).toString('hex')
    at = end
  }
  return { stdout: streams[1], stderr: streams[2], isWhole: at === bytes.length }
}
