const TICK_MS = 5

/**
 * Watches the event loop; the returned function stops and returns the longest time between two of its turns, in milliseconds of
 * the thread's processor time: another program that has the processor meanwhile causes no stall.
 */
export function watchStalls(tickMs: number = TICK_MS): () => number {
  let longest = 0
  let last = process.threadCpuUsage()
  const note = (): void => {
    const { user, system } = process.threadCpuUsage(last)
    longest = Math.max(longest, (user + system) / 1000)
    last = process.threadCpuUsage()
  }
  const timer = setInterval(note, tickMs)
  return () => {
    clearInterval(timer)
    note()
    return longest
  }
}

/** The longest stall during some work, in milliseconds. */
export async function stallDuring(work: () => Promise<unknown>): Promise<number> {
  const longestStall = watchStalls()
  await work().catch((error: unknown) => {
    longestStall()
    throw error
  })
  return longestStall()
}
