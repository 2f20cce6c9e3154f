import { sumOfTimes } from '../sandbox/index.ts'

/** Counters since the pool was made, then its present content. The first three add up to the checkouts that were accepted. */
export interface PoolStats {
  /** Checkouts served at once from an idle sandbox (after its health check, where one was due). */
  readonly hits: number
  /** Checkouts served by a creation: their own, or one already in progress. */
  readonly misses: number
  /** Checkouts that had to wait for a sandbox to be returned. */
  readonly waits: number
  /** Creations started in the background. */
  readonly refills: number
  /** Sandboxes that the engine made. */
  readonly created: number
  /** Sandboxes that ended, for any reason. */
  readonly destroyed: number
  /** Sandboxes that ended because they had been leased `maxUses` times. */
  readonly retired: number
  /** Creations that failed, and idle sandboxes that died or failed their health check. */
  readonly failures: number
  /**
   * The CPU time of the sandboxes that were made, from the start of each to the end of its last run, in milliseconds. Null if the
   * engine does not count it, or a sandbox ended within a run.
   */
  readonly cpuTimeMs: number | null
  /** Sandboxes that are not leased, those under a health check and those that recover included. */
  readonly idle: number
  /** The memory of idle sandboxes in bytes, as each reports it: now, or when it became ready. */
  readonly idleBytes: number
  /** Sandboxes that are leased. */
  readonly leased: number
  /** Creations in progress. */
  readonly starting: number
  /** Checkouts that are not settled yet. */
  readonly waiting: number
}

/** Stats that can still change. */
export type Counters = { -readonly [Name in keyof PoolStats]: PoolStats[Name] }

/** The counters of a new pool. */
export function zeroCounters(): Counters {
  return {
    hits: 0,
    misses: 0,
    waits: 0,
    refills: 0,
    created: 0,
    destroyed: 0,
    retired: 0,
    failures: 0,
    cpuTimeMs: 0,
    idle: 0,
    idleBytes: 0,
    leased: 0,
    starting: 0,
    waiting: 0,
  }
}

/** The sum of the stats of several specs. */
export function sumStats(all: readonly PoolStats[]): PoolStats {
  const { cpuTimeMs: _, ...sum } = zeroCounters()
  const names = Object.keys(sum) as (keyof typeof sum)[]
  for (const stats of all) for (const name of names) sum[name] += stats[name]
  return { ...sum, cpuTimeMs: sumOfTimes(all.map(({ cpuTimeMs }) => cpuTimeMs)) }
}
