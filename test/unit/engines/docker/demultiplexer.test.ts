import { describe, expect, test } from 'vitest'
import { Demultiplexer, type StreamName } from '../../../../src/engines/docker/demultiplexer.ts'
import { frame, randomBytes } from './multiplexed.ts'

/** The content of both streams, independent of the chunks. */
function streamsOf(chunks: readonly Uint8Array[]): { stdout: string; stderr: string; isWhole: boolean } {
  const demultiplexer = new Demultiplexer()
  const bytes: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] }
  for (const chunk of chunks) {
    // Views of the chunk, which is not reused.
    for (const { stream, data } of demultiplexer.push(Uint8Array.from(chunk))) bytes[stream].push(data)
  }
  const hex = (stream: StreamName): string => Buffer.concat(bytes[stream]).toString('hex')
  return { stdout: hex('stdout'), stderr: hex('stderr'), isWhole: demultiplexer.isWhole }
}

const BINARY = Uint8Array.from({ length: 256 }, (_, byte) => byte)
/** A payload that looks like headers, empty frames, and both streams in turns. */
const STREAM = Buffer.concat([
  frame('stdout', BINARY),
  frame('stderr', Buffer.from('warning\n')),
  frame('stdout', new Uint8Array()),
  frame('stdout', frame('stderr', Buffer.from('not a frame'))),
  frame('stderr', new Uint8Array()),
  frame('stdout', Buffer.from([0])),
])
const EXPECTED = {
  stdout: Buffer.concat([BINARY, frame('stderr', Buffer.from('not a frame')), Buffer.from([0])]).toString('hex'),
  stderr: Buffer.from('warning\n').toString('hex'),
  isWhole: true,
}

test('PO-03: a stream that is cut into two at any byte gives the same bytes', () => {
  for (let at = 0; at <= STREAM.length; at += 1) {
    expect(streamsOf([STREAM.subarray(0, at), STREAM.subarray(at)]), `cut at ${at}`).toEqual(EXPECTED)
  }
})

test('PO-03: a stream that arrives byte by byte gives the same bytes', () => {
  expect(streamsOf([...STREAM].map((byte) => Uint8Array.of(byte)))).toEqual(EXPECTED)
})

test.each([0, 100, 200])(
  'PO-03: random binary frames of both streams come through random cuts (from seed %i)',
  (first) => {
    for (let seed = first + 1; seed <= first + 100; seed += 1) {
      const random = randomBytes(seed)
      const sent: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] }
      const frames = Array.from({ length: 1 + random.below(12) }, () => {
        const stream = random.below(3) === 0 ? 'stderr' : 'stdout'
        const payload = random.bytes(random.below(4) === 0 ? 0 : random.below(700))
        sent[stream].push(payload)
        return frame(stream, payload)
      })
      const whole = Buffer.concat(frames)
      const chunks: Uint8Array[] = []
      for (let at = 0; at < whole.length;) {
        const size = 1 + random.below(random.below(2) === 0 ? 9 : 400)
        chunks.push(whole.subarray(at, at + size))
        at += size
      }
      const hex = (stream: StreamName): string => Buffer.concat(sent[stream]).toString('hex')
      expect(streamsOf(chunks), `seed ${seed}`).toEqual({ stdout: hex('stdout'), stderr: hex('stderr'), isWhole: true })
    }
  },
)

test('empty frames give no pieces', () => {
  const demultiplexer = new Demultiplexer()
  const empty = Buffer.concat(Array.from({ length: 10_000 }, () => frame('stdout', new Uint8Array())))
  expect(demultiplexer.push(empty)).toEqual([])
  expect(demultiplexer.isWhole).toBe(true)
})

test('a claimed length of 4 GiB allocates nothing: data is passed on without a copy', () => {
  const demultiplexer = new Demultiplexer()
  expect(demultiplexer.push(Uint8Array.of(1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff))).toEqual([])
  expect(demultiplexer.isWhole).toBe(false)
  const chunk = new Uint8Array(65_536)
  const pieces = demultiplexer.push(chunk)
  expect(pieces.map(({ stream, data }) => [stream, data.length])).toEqual([['stdout', chunk.length]])
  expect(pieces[0]?.data.buffer).toBe(chunk.buffer)
})

describe('rejects invalid framing', () => {
  test.each([
    ['text', Buffer.from('HTTP/1.1 500 Internal Server Error')],
    ['a stream of standard input', Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 1, 65)],
    ['a stream that does not exist', Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 1, 65)],
    ['a header with another byte than zero in the padding', Uint8Array.of(1, 0, 1, 0, 0, 0, 0, 1, 65)],
    ['bytes that are all 255', new Uint8Array(64).fill(255)],
  ])('%s', (_what, bytes) => {
    expect(() => new Demultiplexer().push(bytes)).toThrow(/^not a multiplexed stream: a header begins with/)
  })

  test('also after valid frames, wherever it is cut', () => {
    const bytes = Buffer.concat([frame('stdout', Buffer.from('fine')), Buffer.from('garbage!')])
    for (let at = 0; at <= bytes.length; at += 1) {
      const demultiplexer = new Demultiplexer()
      const push = (): void => {
        demultiplexer.push(bytes.subarray(0, at))
        demultiplexer.push(bytes.subarray(at))
      }
      expect(push, `cut at ${at}`).toThrow(/^not a multiplexed stream/)
    }
  })

  test('random bytes are refused or passed on, and never more than arrived', () => {
    for (let seed = 1; seed <= 2000; seed += 1) {
      const random = randomBytes(seed)
      const demultiplexer = new Demultiplexer()
      let came = 0
      let given = 0
      const feed = (): void => {
        for (let part = 0; part < 8; part += 1) {
          const bytes = random.bytes(random.below(64))
          // Half of the streams begin with valid frames.
          if (part === 0 && seed % 2 === 0) bytes.set([1 + random.below(2), 0, 0, 0].slice(0, bytes.length))
          came += bytes.length
          for (const { data } of demultiplexer.push(bytes)) given += data.length
        }
      }
      expect(errorTextOf(feed)).toMatch(/^(Error: not a multiplexed stream.*)?$/)
      expect(given).toBeLessThanOrEqual(came)
    }
  })
})

/** The error that a function throws, as text; empty when it does not throw. */
function errorTextOf(work: () => void): string {
  try {
    work()
    return ''
  } catch (error) {
    return String(error)
  }
}
