import { expect, test } from 'vitest'
import { readBounded } from '../../../src/environments/read-bounded.ts'
import { heldMemory } from '../../support/memory.ts'

/** Bytes that arrive one by one, each in the buffer of a connection. */
async function* slowly(count: number, atEnd: () => void): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at += 1) {
    yield Promise.resolve(new Uint8Array(64 * 1024).fill(at % 251, 0, 1).subarray(0, 1))
  }
  atEnd()
}

test('a body that arrives byte by byte takes the memory of its bytes', async () => {
  const before = heldMemory()
  let held = Infinity
  const read = readBounded(
    slowly(300, () => {
      held = heldMemory() - before
    }),
    1000,
    'it',
  )
  expect(await read).toHaveLength(300)
  expect(held / 2 ** 20).toBeLessThan(4)
})
