/** Milliseconds of processor time of the fastest of several rounds, because other work on the machine only adds time. */
export function measureBest(work: () => unknown, rounds: number = 3): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round += 1) {
    const started = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(started)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}
