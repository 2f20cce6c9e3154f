import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MiB = 1024 * 1024
const SAMPLE_MS = 20

/** Watches the growth of this process's resident memory; the returned function gives the maximum so far, in MiB. */
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

/** Resident memory in bytes after garbage collection. */
export function settledMemory(): number {
  collectGarbage()
  return process.memoryUsage().rss
}

/** Bytes in use: reachable objects, strings and buffers, without free memory of the allocator. */
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
