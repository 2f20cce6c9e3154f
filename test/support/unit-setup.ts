import { afterEach, beforeEach } from 'vitest'

/* A unit test has one second, of the processor and not by the clock: a machine that stands still fails none. */
const LONGEST_MS = 1000

let started = process.threadCpuUsage()
beforeEach(() => {
  started = process.threadCpuUsage()
})
afterEach(() => {
  const { user, system } = process.threadCpuUsage(started)
  const spentMs = Math.round((user + system) / 1000)
  if (spentMs < LONGEST_MS) return
  throw new Error(`the test took ${spentMs} ms of processor time: name its file *.slow.test.ts, or do less in it`)
})
