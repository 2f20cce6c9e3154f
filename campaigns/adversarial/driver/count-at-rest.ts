import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineUnderTest } from './engine.ts'

/** Broker, zygote and the process of the next run. Pyodide has one process. */
const LEAST = 3
const PAUSE_MS = 150

/**
 * Counts the processes of an idle sandbox, once the number is stable: the process of the next run is made after the answer to
 * the last one.
 */
export async function countAtRest(engine: EngineUnderTest, sandboxId: string): Promise<number> {
  const least = engine.name === 'pyodide' ? 1 : LEAST
  for (let last = -1; ;) {
    const count = engine.processesOf(sandboxId).length
    if (count === last && count >= least) return count
    last = count
    await sleep(PAUSE_MS)
  }
}
