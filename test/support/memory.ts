import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MiB = 1024 * 1024
const SAMPLE_MS = 20
const PIECE_BYTES = 16 * 1024

/** Watches the growth of this process's resident memory; the returned function gives the maximum so far, in MiB. */
export function watchGrowth(): () => number {
  return watchMost(({ rss }) => [rss])
}

/**
 * The same, or the growth of the bytes in use if that is more. A later attempt needs it: free memory that an earlier one left is resident
 * already, and hides what the later one takes.
 */
export function watchAllGrowth(): () => number {
  return watchMost(({ rss, heapUsed, external }) => [rss, heapUsed + external])
}

function watchMost(sizesIn: (usage: NodeJS.MemoryUsage) => readonly number[]): () => number {
  collectGarbage()
  const before = sizesIn(process.memoryUsage())
  let most = 0
  const sample = (): void => {
    const grown = sizesIn(process.memoryUsage()).map((size, index) => size - (before[index] ?? 0))
    most = Math.max(most, ...grown)
  }
  const timer = setInterval(sample, SAMPLE_MS)
  return () => {
    clearInterval(timer)
    sample()
    return most / MiB
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

/** Collects garbage twice, because the memory of buffers is freed at the next collection. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  gc()
  gc()
}

/** Fills the young generation of V8 with garbage: its pages, up to 64 MiB, then belong to this process, as in one that has worked for a while. */
export function fillYoungGeneration(): void {
  const bytes = Buffer.alloc(PIECE_BYTES)
  for (let filled = 0; filled < 128 * MiB; filled += PIECE_BYTES) bytes.toString('latin1')
}
