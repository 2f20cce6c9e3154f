import { expect, test } from 'vitest'
import { memoryOf } from '../../../src/support/value-size.ts'
import { heldMemory } from '../../support/memory.ts'

test.each<[string, string]>([
  ['lists', `[${Array.from({ length: 100_000 }, () => '[]').join(',')}]`],
  ['objects', `[${Array.from({ length: 50_000 }, () => '{"a":1,"b":[2]}').join(',')}]`],
  ['texts', JSON.stringify(Array.from({ length: 50_000 }, (_, n) => `text ${n}`))],
])('the memory of a value is close to its count: %s', (_, text) => {
  const before = heldMemory()
  const value: unknown = JSON.parse(text)
  const held = heldMemory() - before
  const counted = memoryOf(value)
  expect(held / counted).toBeLessThan(2)
  expect(held / counted).toBeGreaterThan(0.2)
})
