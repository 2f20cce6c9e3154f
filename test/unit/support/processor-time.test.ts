import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
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
  const started = threadMsAtRest()
  const elapsed = (): number => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000 - started
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

/** What the kernel counted for this thread until it waited, in milliseconds: the first number of its statistics, in nanoseconds. */
function countedMs(): number {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
}

test('short work measures exactly what it takes, although Linux counts in ticks', () => {
  hash()
  const errors = Array.from({ length: 15 }, () => {
    const countedBefore = countedMs()
    const before = threadMsAtRest()
    hash()
    const measured = threadMsAtRest() - before
    return countedMs() - countedBefore - measured
  })
  // Ticks would count most rounds as nothing. The kernel's count has the measurements in it, which a busy machine makes dear now and then.
  errors.sort((a, b) => a - b)
  expect(errors[0]).toBeGreaterThanOrEqual(0)
  expect(errors[11]).toBeLessThan(1)
})
