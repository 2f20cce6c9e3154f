import { formatValue } from '../support/index.ts'
import type { JournalEvent } from './events.ts'
import { checkRunId, startOfRunId } from './run-id.ts'
import { checkLimit, type JournalStore } from './store.ts'

const MAX_RUNS = 100

/**
 * Keeps the last tasks in the memory of this process.
 * @param options `maxRuns`: maximum number of tasks; default 100.
 */
export function memoryStore({ maxRuns = MAX_RUNS }: { readonly maxRuns?: number } = {}): JournalStore {
  if (!Number.isSafeInteger(maxRuns) || maxRuns < 1)
    throw new TypeError(`maxRuns: ${formatValue(maxRuns)} is not a whole number of at least 1`)
  const runs = new Map<string, JournalEvent[]>()
  return {
    append(event) {
      const events = runs.get(checkRunId(event.run_id))
      if (events !== undefined) {
        events.push(event)
        return
      }
      runs.set(event.run_id, [event])
      for (const oldest of runs.keys()) {
        if (runs.size <= maxRuns) break
        runs.delete(oldest)
      }
    },
    read: async (runId) => [...(runs.get(checkRunId(runId)) ?? [])],
    list: async ({ limit } = {}) =>
      [...runs.keys()]
        .toSorted()
        .toReversed()
        .slice(0, checkLimit(limit))
        .map((runId) => ({ runId, startedAt: startOfRunId(runId) ?? '' })),
    async remove(runId) {
      runs.delete(checkRunId(runId))
    },
    close: async () => {},
  }
}
