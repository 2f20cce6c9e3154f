import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { measureBest, threadMsAtRest } from '../../support/measure-best.ts'
import { stallDuring } from '../../support/stall.ts'

const WORK_MS = 20
const WAIT_MS = 40

/** Keeps the thread from other work without the processor, as a busy machine does. */
function wait(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS)
}

function work(): void {
  const started = process.threadCpuUsage()
  const elapsed = (): number => {
    const { user, system } = process.threadCpuUsage(started)
    return (user + system) / 1000
  }
  while (elapsed() < WORK_MS) continue
}

test('bounds on time count the work of the thread, and nothing that it waits for', async () => {
  expect(measureBest(wait, 1)).toBeLessThan(WORK_MS)
  expect(measureBest(work, 1)).toBeGreaterThanOrEqual(WORK_MS)
  expect(await stallDuring(async () => wait())).toBeLessThan(WORK_MS)
  expect(await stallDuring(async () => work())).toBeGreaterThanOrEqual(WORK_MS)
})

const BYTES = Buffer.alloc(4 * 1024 ** 2)
/** Some milliseconds of work. V8 makes none of it faster as it goes. */
function hash(): string {
  return createHash('sha256').update(BYTES).digest('hex')
}

test('short work measures the same each time, although Linux counts in ticks', () => {
  const times: number[] = []
  hash()
  for (let round = 0; round < 15; round += 1) {
    const before = threadMsAtRest()
    hash()
    times.push(threadMsAtRest() - before)
  }
  times.sort((a, b) => a - b)
  // Ticks would count most rounds as nothing. A machine that shares its cores makes some rounds faster than others.
  expect(times[0]).toBeGreaterThan(0)
  expect(times[3]).toBeGreaterThan((times[7] ?? Infinity) / 2)
})
