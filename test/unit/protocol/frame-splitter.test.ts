import { expect, test } from 'vitest'
import {
  encodePayload,
  FrameSplitter,
  FramingError,
  LineTooLongError,
  MAX_PAYLOAD_BYTES,
} from '../../../src/protocol/index.ts'
import { measureBest } from '../../support/measure-best.ts'

const wire = Buffer.concat([
  Buffer.from('{"type":"a"}\n'),
  encodePayload({ type: 'output' }, Buffer.from('\n{"payload":3,\nü')),
  encodePayload({ type: 'empty' }, Buffer.alloc(0)),
  Buffer.from('{"type":"b","payload":7}\n'),
])
const frames = [
  ['{"type":"a"}', undefined],
  ['{"type":"output"}', '\n{"payload":3,\nü'],
  ['{"type":"empty"}', ''],
  ['{"type":"b","payload":7}', undefined],
]

test('lines and payloads are the same wherever the stream is cut', () => {
  const expected = JSON.stringify(frames)
  const wrong: number[][] = []
  for (let first = 0; first <= wire.length; first += 1) {
    for (let second = first; second <= wire.length; second += 1) {
      const cut = [wire.subarray(0, first), wire.subarray(first, second), wire.subarray(second)]
      if (JSON.stringify(split(cut)) !== expected) wrong.push([first, second])
    }
  }
  expect(wrong).toEqual([])
})

test('single bytes give the same frames, and nothing is held after the last', () => {
  const splitter = new FrameSplitter(1000)
  const found = [...wire].flatMap((byte) => [...splitter.push(Uint8Array.of(byte))].map(textOf))
  expect(found).toEqual(frames)
  expect(splitter.pendingBytes).toBe(0)
})

test('later chunks do not change a payload', () => {
  const splitter = new FrameSplitter(1000)
  const found = [
    ...splitter.push(encodePayload({}, Buffer.from('abc')).subarray(0, -1)),
    ...splitter.push(Buffer.from('c')),
  ]
  for (const _ of splitter.push(encodePayload({}, Buffer.from('xyz')))) continue
  expect(found.map(({ payload }) => String(payload))).toEqual(['abc'])
})

test('an announcement that the protocol does not have is a defect', () => {
  for (const size of ['65537', '-1', '1.5', '1e3', '99999999999', '', ' 5', '05', '"5"', 'null'])
    expect(() => split([Buffer.from(`{"payload":${size},"type":"x"}\n`)])).toThrow(FramingError)
  expect(() => split([Buffer.from('{"payload":5}\n')])).toThrow(FramingError)
  expect(
    split([Buffer.from(`{"payload":${MAX_PAYLOAD_BYTES},"type":"x"}\n`), Buffer.alloc(MAX_PAYLOAD_BYTES)]),
  ).toHaveLength(1)
})

test('an endless header of a payload ends at 4 KiB, an endless line at its bound, in one chunk and in many', () => {
  const header = Buffer.from(`{"payload":5,"type":"${'x'.repeat(5000)}`)
  expect(() => split([header], 1_000_000)).toThrow(LineTooLongError)
  expect(() =>
    split(
      [...header].map((byte) => Uint8Array.of(byte)),
      1_000_000,
    ),
  ).toThrow('4096')
  expect(() => split([Buffer.concat([header, Buffer.from('"}\n')])], 1_000_000)).toThrow('4096')
  const line = Buffer.from(`{"type":"${'x'.repeat(5000)}"}\n`)
  expect(split([line], 6000)).toHaveLength(1)
  expect(() => split([line], 5000)).toThrow('a line of more than 5000 bytes')
  expect(() =>
    split(
      [...line].map((byte) => Uint8Array.of(byte)),
      5000,
    ),
  ).toThrow('5000')
})

test('a payload that is too large is not sent', () => {
  expect(() => encodePayload({}, new Uint8Array(MAX_PAYLOAD_BYTES + 1))).toThrow(RangeError)
})

test('an endless line in small chunks costs linear time', () => {
  const chunk = Buffer.alloc(64, 0x7b)
  const timeOf = (chunks: number): number =>
    measureBest(() => {
      const splitter = new FrameSplitter(Number.MAX_SAFE_INTEGER)
      for (let count = 0; count < chunks; count += 1) for (const _ of splitter.push(chunk)) continue
    })
  timeOf(2000)
  // Eight times the input; quadratic work would take 64 times as long.
  expect(timeOf(16_000)).toBeLessThan(timeOf(2000) * 24 + 20)
})

function split(chunks: readonly Uint8Array[], bound = 1000): (string | undefined)[][] {
  const splitter = new FrameSplitter(bound)
  return chunks.flatMap((chunk) => [...splitter.push(chunk)].map(textOf))
}

function textOf({ line, payload }: { line: Buffer; payload: Buffer | undefined }): (string | undefined)[] {
  return [String(line), payload?.toString()]
}
