import { expect, test } from 'vitest'
import { HINT_RULES, hintsFor } from '../../../src/script/hints.ts'
import { fastestMs, measureBest } from '../../support/measure-best.ts'
import { ERRORS } from './python-errors.ts'

const SHORT = 2000
const LONG = 16_000

test('the time of each rule grows at most linearly with the length of the error', () => {
  const slow = new Set<string>()
  for (const { pattern } of HINT_RULES) {
    for (const [, error] of ERRORS.filter(([, text]) => pattern.test(text))) {
      for (const grow of growthsOf(error)) {
        const [shortText, longText] = [grow(SHORT), grow(LONG)]
        // A millisecond is noise.
        if (fastestMs(() => pattern.exec(longText)) <= 1) continue
        const short = measureBest(() => pattern.exec(shortText))
        const long = measureBest(() => pattern.exec(longText))
        // Eight times the text takes about 8 times as long; quadratic work would take 64 times.
        if (long > Math.max(28 * short, 1)) slow.add(`${pattern.source} on ${grow(80)}`)
      }
    }
  }
  expect([...slow]).toEqual([])
})

test('a long error takes no longer than its cut form (HA-07)', () => {
  const error = `RuntimeError: dictionary${' changed '.repeat(5000)}`
  const long = measureBest(() => hintsFor({ error, violations: [], traceback: null }, []))
  const short = measureBest(() => hintsFor({ error: error.slice(0, SHORT), violations: [], traceback: null }, []))
  expect(long).toBeLessThan(Math.max(28 * short, 5))
})

/** Variants of an error in which one word or several adjacent words are repeated, without the end that a rule looks for. */
function growthsOf(error: string): ((length: number) => string)[] {
  const words = error.split(/(?<=[^\w.])(?=[\w.])|(?<=[\w.])(?=[^\w.])/).slice(0, 16)
  return words.flatMap((_, from) =>
    [1, 2, 3, 4].map((count) => {
      const before = words.slice(0, from).join('')
      const unit = words.slice(from, from + count).join('')
      return (length: number): string => `${before}${unit.repeat(Math.ceil(length / unit.length))}\0`
    }),
  )
}
