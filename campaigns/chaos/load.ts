import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultKind } from './fault.ts'
import { COMPLETED } from './faults/bounds.ts'
import type { ChaosHost } from './host.ts'
import { eventually } from '../../test/support/eventually.ts'
import type { Site } from './site.ts'

/** Short runs, one after the other, during a fault. */
export interface Load {
  /** Waits until one run has failed. */
  refusal(withinMs: number): Promise<void>
  /** Stops the load. Returns descriptions of the unexpected outcomes. */
  stop(): Promise<readonly string[]>
  /** Number of runs per outcome. */
  counts(): Record<string, number>
}

const DEADLINE_SEC = 5
/** Wait for a sandbox + deadline + backstop of the host + time to settle. */
const RUN_MS = 30_000 + DEADLINE_SEC * 1000 + 5000 + 2000
/** Same, with the longer pool wait of tasks. */
const TASK_MS = 120_000 + DEADLINE_SEC * 1000 + 5000 + 2000
const PAUSE_MS = 100

/** Starts the load for a kind of fault. */
export function startLoad(site: Site, host: ChaosHost, kind: FaultKind): Load {
  const allowed = kind.meanwhile ?? COMPLETED
  const boundMs = kind.load === 'tasks' ? TASK_MS : RUN_MS
  const counts: Record<string, number> = {}
  const breaches: string[] = []
  let isOver = kind.load === 'none'
  let refused = 0
  const loop = async (): Promise<void> => {
    while (!isOver) {
      const from = performance.now()
      const asked = kind.load === 'tasks' ? host.solve(site.journal) : host.run('short', 0, DEADLINE_SEC).settled
      const { said, at } = await asked
      const outcome = said.split(':', 1)[0] ?? ''
      counts[outcome] = (counts[outcome] ?? 0) + 1
      if (outcome !== 'completed') refused += 1
      if (!allowed.some((pattern) => pattern.test(said)))
        breaches.push(`unexpected outcome of a run during the fault: ${said}`)
      if (at - from > boundMs)
        breaches.push(`a run during the fault settled after ${Math.round(at - from)} ms; the limit is ${boundMs} ms`)
      // A stopped daemon would block the driver as well.
      if (site.daemon === undefined) site.look(host.pid)
      await sleep(PAUSE_MS)
    }
  }
  const running = loop().catch((error: unknown) => breaches.push(`the driver failed: ${String(error)}`))
  return {
    refusal: async (withinMs) => {
      const none = await eventually(() => (refused > 0 ? undefined : 'none was refused'), withinMs)
      if (none !== undefined) breaches.push(`the fault had no effect: ${none} within ${withinMs} ms`)
    },
    stop: async () => {
      isOver = true
      await running
      return [...new Set(breaches)]
    },
    counts: () => counts,
  }
}
