import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'

const WITHIN_MS = 20

test('what never comes is given up at the timeout, with the last problem', async () => {
  const began = performance.now()
  let probes = 0
  expect(await eventually(() => `problem ${(probes += 1)}`, WITHIN_MS)).toBe(`problem ${probes}`)
  expect(performance.now() - began).toBeGreaterThanOrEqual(WITHIN_MS)
  // Pauses of 2, 4 and 8 ms, and of 16 ms at the most.
  expect(probes).toBeLessThanOrEqual(5)
})

test('a process that stands still for longer than the timeout finds what arrives afterwards', async () => {
  let hasArrived = false
  const standStill = (): void => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 * WITHIN_MS)
    // Timers that are due run before what arrives in the next turn of the event loop.
    setImmediate(() => setImmediate(() => (hasArrived = true)))
  }
  setTimeout(standStill, 0)
  expect(await eventually(() => (hasArrived ? undefined : 'nothing'), WITHIN_MS)).toBeUndefined()
})
