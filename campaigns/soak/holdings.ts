import { readdirSync, readlinkSync } from 'node:fs'
import type { Remains } from './remains.ts'

/** Counts of what an idle host holds, by name. A count that grows between pauses is a leak. */
export type Holdings = Readonly<Record<string, number>>

/** Counts sandboxes, processes, descriptors and handles of the host process. */
export function measureHoldings(sandboxes: number, processes: number): Holdings {
  return {
    sandboxes,
    'sandbox processes': processes,
    ...withPrefix('descriptors', countNames(descriptors())),
    ...withPrefix('handles', countNames(process.getActiveResourcesInfo())),
  }
}

/** Returns what exceeds the baseline. Lower counts are fine. */
export function excessOver(baseline: Holdings, now: Holdings): Remains {
  return Object.fromEntries(
    Object.entries(now).flatMap(([name, count]) => {
      const excess = count - (baseline[name] ?? 0)
      return excess > 0 ? [[name, Array.from({ length: excess }, (_, index) => `${name} ${index + 1} above`)]] : []
    }),
  )
}

/** The sum of the counts whose names start with a prefix. */
export function total(holdings: Holdings, prefix: string): number {
  return Object.entries(holdings).reduce((sum, [name, count]) => sum + (name.startsWith(prefix) ? count : 0), 0)
}

/** Targets of the open descriptors of this process, without the descriptor that lists them. */
function descriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return maskIds(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      return []
    }
  })
}

/** Replaces ids and numbers that differ between sandboxes. */
function maskIds(target: string): string {
  return target.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, '#').replace(/\d{3,}/g, '#')
}

function countNames(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function withPrefix(prefix: string, counts: ReadonlyMap<string, number>): Holdings {
  return Object.fromEntries([...counts].map(([name, count]) => [`${prefix}: ${name}`, count]))
}
