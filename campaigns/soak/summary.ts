import { machine } from '../../test/support/machine.ts'
import type { MachineEngine } from '../../test/support/walls.ts'
import { type Growth, type GrowthBound, growthOf } from './growth.ts'
import type { Unexpected } from './load.ts'
import type { Sample } from './sample.ts'

/**
 * Allowed growth of memory. Resident memory grows by tens of MiB in the first minutes without a leak, while the allocator
 * fills its arenas, so a shorter soak is judged by held memory.
 */
export const BOUNDS: Readonly<Record<'held' | 'rss', GrowthBound>> = {
  held: { mibPerHour: 4, mib: 2, warmUpHours: 0 },
  rss: { mibPerHour: 16, mib: 16, warmUpHours: 1 / 6 },
}

/** Options of a soak. */
export interface SoakOptions {
  readonly engine: MachineEngine
  readonly minutes: number
  readonly concurrency: number
  readonly seed: number
  /** Seconds of load between two pauses. */
  readonly everySec: number
  /** A pattern for the names of the kinds that run. Default: all. */
  readonly kinds?: string
  /** Seconds that each worker rests after a run, so that a soak leaves the machine to others. Default 0. */
  readonly restSec?: number
}

/** A leak that was found at one or more pauses. */
export interface Leak {
  readonly kind: string
  readonly what: string
}

/** The result of a soak, written to summary.json. */
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
  /** The first unexpected runs. */
  readonly unexpected: readonly Unexpected[]
  readonly leaks: readonly Leak[]
  readonly growth: { readonly held: Growth; readonly rss: Growth }
  readonly samples: readonly Sample[]
  /** Reasons why the soak failed; empty when it passed. */
  readonly problems: readonly string[]
}

/** Growth of held and resident memory. */
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

/** Adds growth and problems to the data of a soak. */
export function summarizeSoak(found: Omit<Summary, 'growth' | 'problems' | 'machine' | 'versions'>): Summary {
  const growth = growthsOf(found.samples)
  const problems = [
    ...(found.runs === 0 ? ['no script ran'] : []),
    ...(found.unexpectedRuns === 0 ? [] : [`${found.unexpectedRuns} runs did not come out as expected`]),
    ...(found.leaks.length === 0 ? [] : [`${found.leaks.length} leaks`]),
    ...(['held', 'rss'] as const)
      .filter((name) => growth[name].grows)
      .map((name) => describeGrowth(name, growth[name])),
  ]
  return { ...found, growth, problems, machine: machine(), versions: versions() }
}

/** Describes a growth. */
export function describeGrowth(name: keyof typeof BOUNDS, { mibPerHour, atLeastMibPerHour, judged }: Growth): string {
  const what = name === 'rss' ? 'resident memory' : 'held memory'
  if (!judged) return `${what}: too few samples to judge`
  const { mibPerHour: bound } = BOUNDS[name]
  const slope = `${mibPerHour.toFixed(2)} MiB/h (with 99% certainty at least ${atLeastMibPerHour.toFixed(2)}, bound ${bound})`
  return `${what}: ${slope}`
}

function versions(): string {
  return `Node ${process.version}`
}
