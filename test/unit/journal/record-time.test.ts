import { expect, test } from 'vitest'
import { type JournalBody, recordOf } from '../../../src/journal/index.ts'
import { ID } from './read-record.ts'
import { eventsOf, PLACE, runStarted, toolAnswered } from './sample-events.ts'
import { measureBest } from '../../support/measure-best.ts'

test('thousands of calls of a run are read in linear time', () => {
  const measure = (count: number): number => {
    const bodies = Array.from({ length: count }, (_, index): JournalBody[] => {
      const key = `L1#${index + 1}`
      return [
        { type: 'tool_called', ...PLACE, key, line: 1, name: 'price', effect: 'read', args: {} },
        toolAnswered({ key }),
      ]
    })
    const events = eventsOf(ID, [runStarted(), ...bodies.flat()])
    let calls = 0
    const spentMs = measureBest(() => (calls = recordOf(events).totalToolCalls), 1)
    expect(calls).toBe(count)
    return spentMs
  }
  measure(1000)
  // Eight times the calls: a square would take 64 times as long.
  const short = measure(2500)
  expect(measure(20_000)).toBeLessThan(Math.max(28 * short, 100))
})
