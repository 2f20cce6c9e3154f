import { summarize } from '../../bench/measure.ts'
import type { Tally } from './load.ts'
import { type Holdings, total } from './holdings.ts'
import type { Remains } from './remains.ts'

const MiB = 1024 * 1024

/** One line of samples.jsonl: the load since the previous line, and what the host held at the pause after it. */
export interface Sample {
  readonly atSec: number
  readonly runs: number
  readonly runsPerSec: number
  /** Latency of runs that only answer, including the wait for a sandbox. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly rssMiB: number
  /** Peak under load. */
  readonly peakRssMiB: number
  /** Reachable objects and buffers, after garbage collection if Node exposes it. */
  readonly heldMiB: number
  readonly descriptors: number
  readonly handles: number
  readonly sandboxes: number
  readonly processes: number
  readonly leaks: Readonly<Record<string, number>>
  readonly unexpected: number
}

/** Builds a sample from the counts of one round. */
export function sampleOf(given: {
  readonly atSec: number
  readonly loadSec: number
  readonly tally: Tally
  readonly peakRssMiB: number
  readonly holdings: Holdings
  readonly leaks: Remains
}): Sample {
  const { atSec, loadSec, tally, peakRssMiB, holdings, leaks } = given
  const quick = tally.quickMs.toSorted((a, b) => a - b)
  globalThis.gc?.()
  globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  return {
    atSec: round(atSec),
    runs: tally.runs,
    runsPerSec: round(tally.runs / loadSec),
    p50Ms: round(summarize(quick).p50),
    p99Ms: round(quick[Math.min(quick.length - 1, Math.floor(quick.length * 0.99))] ?? Number.NaN),
    rssMiB: round(rss / MiB),
    peakRssMiB: round(peakRssMiB),
    heldMiB: round((heapUsed + external) / MiB),
    descriptors: total(holdings, 'descriptors'),
    handles: total(holdings, 'handles'),
    sandboxes: holdings['sandboxes'] ?? 0,
    processes: holdings['sandbox processes'] ?? 0,
    leaks: Object.fromEntries(Object.entries(leaks).map(([kind, items]) => [kind, items.length])),
    unexpected: tally.unexpected.length,
  }
}

/** Formats a sample as one line for the terminal. */
export function lineOf(sample: Sample): string {
  const leaks = Object.entries(sample.leaks).map(([kind, count]) => `${count} ${kind}`)
  return [
    `${(sample.atSec / 60).toFixed(1).padStart(5)} min`,
    `${sample.runsPerSec.toFixed(1)} runs/s`,
    `p50 ${sample.p50Ms.toFixed(1)} ms`,
    `p99 ${sample.p99Ms.toFixed(1)} ms`,
    `RSS ${sample.rssMiB.toFixed(1)} MiB (peak ${sample.peakRssMiB.toFixed(1)})`,
    `held ${sample.heldMiB.toFixed(2)} MiB`,
    `${sample.descriptors} fds`,
    `${sample.handles} handles`,
    `${sample.sandboxes} sandboxes`,
    `${sample.processes} processes`,
    `leaks: ${leaks.length === 0 ? 'none' : leaks.join(', ')}`,
    `unexpected: ${sample.unexpected}`,
  ].join('  ')
}

/** Rounds to three decimals. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
