import { describe, expect, test } from 'vitest'
import { OutputWindow, utf8Prefix, utf8Suffix, windowOutput } from '../../../src/workspace/output-window.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

const CASES = workspaceCases('output_window')

describe('WS-13: a text held to its head and tail', () => {
  // 0 is no limit in the original, which then counts no bytes; here there is always a limit.
  test.each((CASES['cases'] ?? []).filter(({ max_bytes }) => max_bytes !== 0))(
    '$max_bytes bytes of $input',
    ({ input, max_bytes: max, expected: text, truncated, total_bytes: totalBytes }) => {
      expect(windowOutput(Buffer.from(input as string), max as number)).toEqual({ text, truncated, totalBytes })
    },
  )

  test('a text that fits stays whole; unlike the original, it is counted', () => {
    expect(windowOutput(Buffer.from('output'), 6)).toEqual({ text: 'output', truncated: false, totalBytes: 6 })
  })

  test('unlike in the original, bytes that are not UTF-8 are replaced and not dropped', () => {
    expect(windowOutput(Buffer.from([0xff, 0x61]), 4).text).toBe('\ufffda')
  })

  test.each(CASES['helpers'] ?? [])(
    '$fn cuts $input to $max bytes and spares characters',
    ({ fn, input, max, expected }) => {
      const cut = fn === 'utf8_suffix' ? utf8Suffix : utf8Prefix
      expect(String(cut(Buffer.from(input as string), max as number))).toBe(expected)
    },
  )

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
