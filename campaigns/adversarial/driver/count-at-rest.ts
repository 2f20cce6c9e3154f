import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineUnderTest } from './engine.ts'

/** Broker, zygote and the process of the next run. Pyodide has one process. */
const LEAST = 3
const PAUSE_MS = 150
/** A machine under load makes the process of the next run within seconds. */
const WITHIN_MS = 30_000

/**
 * Counts the processes of an idle sandbox, once the number is stable: the process of the next run is made after the answer to
 * the last one.
 * @throws Error if it does not become stable: the sandbox is gone, or its processes cannot be seen from this machine.
 */
export async function countAtRest(
  engine: Pick<EngineUnderTest, 'name' | 'processesOf'>,
  sandboxId: string,
  withinMs: number = WITHIN_MS,
): Promise<number> {
  const least = engine.name === 'pyodide' ? 1 : LEAST
  const deadline = performance.now() + withinMs
  for (let last = -1; ;) {
    const count = engine.processesOf(sandboxId).length
    if (count === last && count >= least) return count
    if (performance.now() > deadline) {
      throw new Error(
        `the sandbox ${sandboxId} has ${count} processes after ${withinMs} ms, and needs ${least} at rest`,
      )
    }
    last = count
    await sleep(PAUSE_MS)
  }
}
