import { describe, expect, test } from 'vitest'
import { OutputWindow, utf8Prefix, utf8Suffix, windowOutput } from '../../../src/workspace/output-window.ts'

/** The rows of the original's cases. Its row for "no limit" counts 0 bytes there; we have no such limit (see below). */
const ROWS = [
  { input: '你abcdefghijklmnopqrstuvwxyz', max: 2, expected: '', totalBytes: 29 },
  { input: '你abcdefghijklmnopqrstuvwxyz', max: 26, expected: '你abcdefghijklmnopqrstuvw', totalBytes: 29 },
  { input: `你${'x'.repeat(80)}好`, max: 32, expected: '你\n...[output truncated]...\n好', totalBytes: 86 },
]

describe('WS-13: a text held to its head and tail', () => {
  test('the rows of the original', () => {
    for (const { input, max, expected, totalBytes } of ROWS)
      expect(windowOutput(Buffer.from(input), max)).toEqual({ text: expected, truncated: true, totalBytes })
  })

  test('a text that fits stays whole; unlike the original, it is counted', () => {
    expect(windowOutput(Buffer.from('output'), 6)).toEqual({ text: 'output', truncated: false, totalBytes: 6 })
  })

  test('unlike in the original, bytes that are not UTF-8 are replaced and not dropped', () => {
    expect(windowOutput(Buffer.from([0xff, 0x61]), 4).text).toBe('\ufffda')
  })

  test('cuts spare characters', () => {
    expect(String(utf8Suffix(Buffer.from('a你好'), 4))).toBe('好')
    expect(String(utf8Prefix(Buffer.from('你'), 0))).toBe('')
    expect(String(utf8Prefix(Buffer.from('你'), 3))).toBe('你')
  })

  test('the result does not depend on the pieces, and is never longer than asked for', () => {
    const text = Buffer.from('aü漢🎉'.repeat(200))
    for (let max = 1; max < 200; max += 1) {
      const whole = windowOutput(text, max)
      expect(Buffer.byteLength(whole.text)).toBeLessThanOrEqual(max)
      expect(whole.text).not.toContain('\ufffd')
      const pieces = new OutputWindow(max)
      for (let at = 0; at < text.length; at += 7) pieces.push(text.subarray(at, at + 7))
      expect(pieces.result()).toEqual(whole)
    }
  })
})
