import { describe, expect, test } from 'vitest'
import { historyText } from '../../../src/script/history.ts'

const item = (step: number, size: number): { step: number; label: string; data: string } => ({
  step,
  label: 'rows',
  data: 'x'.repeat(size),
})

describe('data of earlier steps in a prompt (OR-03)', () => {
  test('each item is a line of JSON with its step and label', () => {
    const collected = [
      { step: 1, label: 'rates', data: { USD: 1.1 } },
      { step: 2, label: 'a "b"', data: [null, '`'] },
    ]
    expect(historyText(collected)).toBe('step 1, "rates": {"USD":1.1}\nstep 2, "a \\"b\\"": [null,"\\u0060"]')
    expect(historyText([])).toBe('')
  })

  test('long items get the space that short ones leave', () => {
    const lines = historyText([item(1, 50), item(2, 5000), item(3, 50)], 2000).split('\n')
    expect(lines.map(({ length }) => length > 1500)).toEqual([false, false, true, false])
    expect(lines[0]).toBe('(1 long item is cut in the middle; collected has them whole)')
    expect(lines[1]).not.toContain('left out')
    expect(lines[2]).toMatch(/^step 2, "rows": "xx.* characters left out .*xx"$/)
  })

  test('a label that is long is cut', () => {
    expect(historyText([{ step: 1, label: 'l'.repeat(1000), data: 1 }]).length).toBeLessThan(200)
  })

  test('the oldest are left out if not even their heads fit', () => {
    const lines = historyText(
      Array.from({ length: 100 }, (_, step) => item(step, 1000)),
      2000,
    ).split('\n')
    expect(lines[0]).toBe('(90 earlier items are not shown; collected has them all)')
    expect(lines.at(-1)).toMatch(/^step 99, /)
    expect(lines[1]).toBe('(10 long items are cut in the middle; collected has them whole)')
    expect(lines.length).toBe(12)
  })
})
