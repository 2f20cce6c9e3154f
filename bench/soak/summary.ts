import { machine } from '../../test/support/machine.ts'
import type { EngineName } from './kind.ts'
import { type Growth, type GrowthBound, growthOf } from './growth.ts'
import type { Unexpected } from './load.ts'
import type { Sample } from './sample.ts'

/**
 * What memory may gain. Resident memory of a process that holds no more than before gains tens of MiB in its first minutes,
 * while the allocator fills its arenas: a soak that is shorter is judged by what is held.
 */
export const BOUNDS: Readonly<Record<'held' | 'rss', GrowthBound>> = {
  held: { mibPerHour: 4, mib: 2, warmUpHours: 0 },
  rss: { mibPerHour: 16, mib: 16, warmUpHours: 1 / 6 },
}

/** What was asked for. */
export interface SoakOptions {
  readonly engine: EngineName
  readonly minutes: number
  readonly concurrency: number
  readonly seed: number
  /** Seconds of load between two pauses. */
  readonly everySec: number
}

/** A leak that was seen at one or more pauses. */
export interface Leak {
  readonly kind: string
  readonly what: string
}

/** What a soak came to: summary.json. */
export interface Summary {
  readonly options: SoakOptions
  readonly startedAt: string
  readonly durationSec: number
  readonly machine: string
  readonly versions: string
  readonly runs: number
  readonly runsByKind: Readonly<Record<string, number>>
  readonly sandboxesMade: number
  readonly unexpectedRuns: number
  /** The first of them. */
  readonly unexpected: readonly Unexpected[]
  readonly leaks: readonly Leak[]
  readonly growth: { readonly held: Growth; readonly rss: Growth }
  readonly samples: readonly Sample[]
  /** Why it is not as it must be; empty when it is. */
  readonly problems: readonly string[]
}

/** What memory gained. */
export function growthsOf(samples: readonly Sample[]): Summary['growth'] {
  const series = (value: (sample: Sample) => number): { hours: number; mib: number }[] =>
    samples.map((sample) => ({ hours: sample.atSec / 3600, mib: value(sample) }))
  return {
    held: growthOf(
      series(({ heldMiB }) => heldMiB),
      BOUNDS.held,
    ),
    rss: growthOf(
      series(({ rssMiB }) => rssMiB),
      BOUNDS.rss,
    ),
  }
}

/** Judges a soak. */
export function judged(found: Omit<Summary, 'growth' | 'problems' | 'machine' | 'versions'>): Summary {
  const growth = growthsOf(found.samples)
  const problems = [
    ...(found.runs === 0 ? ['nothing ran'] : []),
    ...(found.unexpectedRuns === 0 ? [] : [`${found.unexpectedRuns} runs did not come out as expected`]),
    ...(found.leaks.length === 0 ? [] : [`${found.leaks.length} leaks`]),
    ...(['held', 'rss'] as const).filter((name) => growth[name].grows).map((name) => grownText(name, growth[name])),
  ]
  return { ...found, growth, problems, machine: machine(), versions: versions() }
}

/** A growth in words. */
export function grownText(name: keyof typeof BOUNDS, { mibPerHour, atLeastMibPerHour, judged }: Growth): string {
  const what = name === 'rss' ? 'resident memory' : 'held memory'
  if (!judged) return `${what}: too few samples to judge`
  const { mibPerHour: bound } = BOUNDS[name]
  const slope = `${mibPerHour.toFixed(2)} MiB/h (with 99% certainty at least ${atLeastMibPerHour.toFixed(2)}, bound ${bound})`
  return `${what}: ${slope}`
}

function versions(): string {
  return `Node ${process.version}`
}
