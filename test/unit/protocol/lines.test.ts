import { expect, test } from 'vitest'
import { LineSplitter, LineTooLongError } from '../../../src/protocol/index.ts'
import { measureBest } from '../../support/measure-best.ts'

const text = 'aü漢🎉\n\nb\r\nlast'
const bytes = Buffer.from(text)

test('lines are the same wherever the stream is cut, even inside a character', () => {
  for (let first = 0; first <= bytes.length; first += 1) {
    for (let second = first; second <= bytes.length; second += 1) {
      const cut = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]
      expect(split(cut)).toEqual({ lines: ['aü漢🎉', '', 'b\r'], pendingBytes: 4 })
    }
  }
})

test('single bytes give the same lines', () => {
  expect(split([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual({
    lines: ['aü漢🎉', '', 'b\r'],
    pendingBytes: 4,
  })
})

test('later chunks do not change a returned line', () => {
  const splitter = new LineSplitter(100)
  const first = [...splitter.push(Buffer.from('ab')), ...splitter.push(Buffer.from('cd\n'))]
  const second = [...splitter.push(Buffer.from('xy')), ...splitter.push(Buffer.from('z\n'))]
  expect([...first, ...second].map(String)).toEqual(['abcd', 'xyz'])
})

test('a splitter that reuses its memory gives the same lines, and the second long one in the memory of the first', () => {
  const splitter = new LineSplitter(1000, true)
  const memory: ArrayBufferLike[] = []
  const lines: string[] = []
  for (const chunk of ['aaaa', 'bb\ncc', 'c\nd\n', 'ee', 'ff\n']) {
    for (const line of splitter.push(Buffer.from(chunk))) {
      lines.push(String(line))
      memory.push(line.buffer)
    }
  }
  expect(lines).toEqual(['aaaabb', 'ccc', 'd', 'eeff'])
  expect(memory[1]).toBe(memory[0])
  expect(memory[3]).toBe(memory[0])
})

test('the bound applies to a line in one chunk and in many, and a line of exactly the bound passes', () => {
  expect(split([Buffer.from('12345678\n')], 8).lines).toEqual(['12345678'])
  expect(() => split([Buffer.from('123456789\n')], 8)).toThrow(LineTooLongError)
  expect(() => split([Buffer.from('12345'), Buffer.from('6789')], 8)).toThrow(LineTooLongError)
  expect(() => split([Buffer.from('12345'), Buffer.from('6789\n')], 8)).toThrow('a line of more than 8 bytes')
})

test('an endless line costs linear time', () => {
  const chunk = Buffer.alloc(64, 0x7b)
  const timeOf = (chunks: number): number => {
    return measureBest(() => {
      const splitter = new LineSplitter(Number.MAX_SAFE_INTEGER)
      for (let count = 0; count < chunks; count += 1) for (const _ of splitter.push(chunk)) continue
    })
  }
  timeOf(10_000)
  const small = timeOf(10_000)
  const large = timeOf(80_000)
  // Eight times the input; quadratic work would take 64 times as long.
  expect(large).toBeLessThan(small * 24 + 20)
})

function split(chunks: readonly Uint8Array[], bound = 1000): { lines: string[]; pendingBytes: number } {
  const splitter = new LineSplitter(bound)
  const lines = chunks.flatMap((chunk) => [...splitter.push(chunk)].map(String))
  return { lines, pendingBytes: splitter.pendingBytes }
}
