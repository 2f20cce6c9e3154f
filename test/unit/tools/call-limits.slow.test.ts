import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { heldMemory } from '../../support/memory.ts'
import { eventually } from '../../support/eventually.ts'
import { bridge, call } from './sample-bridge.ts'

test('waiting calls of many small values reach the limit before they use more than 128 MiB', async () => {
  const { port } = bridge({ execute: () => Promise.withResolvers().promise })
  const list = `[${Array.from({ length: 130_000 }, () => '{}').join(',')}]`
  const before = heldMemory()
  let taken = 0
  const taking = (async () => {
    for (let n = 0; n < 100; n += 1) {
      await port.take(call(String(n), { list: JSON.parse(list) }))
      taken += 1
    }
  })()
  await sleep(0)
  expect(await eventually(() => (taken > 3 ? undefined : `${taken}`), 5000)).toBeUndefined()
  const held = (heldMemory() - before) / 2 ** 20
  expect(taken).toBeLessThan(30)
  expect(held).toBeLessThan(128)
  port.close()
  await taking
})

test('waiting calls with 64 MiB of arguments reach the limit, however few they are', async () => {
  const { port } = bridge({ execute: () => Promise.withResolvers().promise })
  const text = 'x'.repeat(16 * 1024 * 1024)
  let taken = 0
  const taking = (async () => {
    for (let n = 0; n < 5; n += 1) {
      await port.take(call(String(n), { text }))
      taken += 1
    }
  })()
  expect(await eventually(() => (taken === 3 ? undefined : `${taken}`), 5000)).toBeUndefined()
  await sleep(0)
  expect(taken).toBe(3)
  port.close()
  await taking
})
