import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MiB = 1024 * 1024
const SAMPLE_MS = 20

/** Watches how much resident memory this process gains; call the result for the most so far, in MiB. */
export function watchGrowth(): () => number {
  collectGarbage()
  const before = process.memoryUsage().rss
  let most = before
  const sample = (): void => {
    most = Math.max(most, process.memoryUsage().rss)
  }
  const timer = setInterval(sample, SAMPLE_MS)
  return () => {
    clearInterval(timer)
    sample()
    return (most - before) / MiB
  }
}

/** Resident memory in bytes once what is not needed is given back. */
export function settledMemory(): number {
  collectGarbage()
  return process.memoryUsage().rss
}

/** Bytes that are still referred to: objects, strings and buffers, without what the allocator has not given back. */
export function heldMemory(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  gc()
  gc()
}
