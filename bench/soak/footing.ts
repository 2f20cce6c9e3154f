import { readdirSync, readlinkSync } from 'node:fs'
import type { Remains } from './remains.ts'

/** How much a host holds while nothing runs: numbers by name. Equal at each pause, or something is not given back. */
export type Footing = Readonly<Record<string, number>>

/** What the host process itself holds. */
export function footingOf(sandboxes: number, processes: number): Footing {
  return {
    sandboxes,
    'sandbox processes': processes,
    ...prefixed('descriptors', counted(descriptors())),
    ...prefixed('handles', counted(process.getActiveResourcesInfo())),
  }
}

/** What is more than it was; what is less was given back early. */
export function above(baseline: Footing, now: Footing): Remains {
  return Object.fromEntries(
    Object.entries(now).flatMap(([name, count]) => {
      const excess = count - (baseline[name] ?? 0)
      return excess > 0 ? [[name, Array.from({ length: excess }, (_, index) => `${name} ${index + 1} above`)]] : []
    }),
  )
}

/** The sum of the numbers whose names begin so. */
export function total(footing: Footing, prefix: string): number {
  return Object.entries(footing).reduce((sum, [name, count]) => sum + (name.startsWith(prefix) ? count : 0), 0)
}

/** Descriptors of this process by what they are; the one that lists them is left out. */
function descriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return nameless(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      return []
    }
  })
}

/** Without what differs from sandbox to sandbox. */
function nameless(target: string): string {
  return target.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, '#').replace(/\d{3,}/g, '#')
}

function counted(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function prefixed(prefix: string, counts: ReadonlyMap<string, number>): Footing {
  return Object.fromEntries([...counts].map(([name, count]) => [`${prefix}: ${name}`, count]))
}
