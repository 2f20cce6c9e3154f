/** Work that takes less by the clock is repeated: V8 makes it faster as it goes, and a round ends although work only waits. */
const SHORTEST_MS = 20

/**
 * Milliseconds of processor time of the fastest of several rounds, because other work on the machine only adds time. A round below
 * `enoughMs` is the last: a test that asks for no less need not look for a faster one.
 */
export function measureBest(work: () => unknown, rounds: number = 3, enoughMs: number = 0): number {
  let best = Infinity
  for (let round = 0; round < rounds && best >= enoughMs; round += 1) best = Math.min(best, measureRound(work))
  return best
}

/** Milliseconds by the clock of the fastest of several rounds: at least the processor time, and cheap for work that is quick. */
export function fastestMs(work: () => unknown, rounds: number = 3): number {
  const times = Array.from({ length: rounds }, () => {
    const began = performance.now()
    work()
    return performance.now() - began
  })
  return Math.min(...times)
}

function measureRound(work: () => unknown): number {
  let times = 0
  const spentMs = measureOnce(() => {
    const began = performance.now()
    do {
      work()
      times += 1
    } while (performance.now() - began < SHORTEST_MS)
  })
  return spentMs / times
}

/** Milliseconds of processor time of work that cannot be repeated. */
export function measureOnce(work: () => unknown): number {
  const before = threadMsAtRest()
  work()
  return threadMsAtRest() - before
}

/** A thread that waits this long gives the processor up, and Linux then counts what it spent until then. */
const REST_MS = 1
const REST = new Int32Array(new SharedArrayBuffer(4))

/**
 * The processor time of this thread in milliseconds, exact for short work as well. Without the rest, work of 3 ms measures as anything
 * from 0 to 3 ms. The event loop would not always rest: a timer that is due by the time it looks causes no wait.
 */
export function threadMsAtRest(): number {
  Atomics.wait(REST, 0, 0, REST_MS)
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
