import { setTimeout as sleep } from 'node:timers/promises'

/** Percentiles of one series of measurements, in the unit of the series. */
export interface Summary {
  readonly n: number
  readonly p50: number
  readonly p95: number
  readonly max: number
}

/** Computes the percentiles of a series. */
export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), max: at(1) }
}

export { measureMs } from '../src/testing/conformance/least-of.ts'

/**
 * Measures the series in turn, so that a change of the machine's speed affects all alike. Returns milliseconds by name.
 * @param inARow measurements of a series before those of the next one.
 */
export async function measureInTurns(
  rounds: number,
  pauseMs: number,
  series: Readonly<Record<string, () => Promise<number>>>,
  inARow = 1,
): Promise<Record<string, Summary>> {
  const values = new Map<string, number[]>(Object.keys(series).map((name) => [name, []]))
  for (let left = rounds; left > 0; left -= inARow) {
    for (const [name, measure] of Object.entries(series)) {
      for (let n = Math.min(left, inARow); n > 0; n -= 1) {
        values.get(name)?.push(await measure())
        if (pauseMs > 0) await pause(pauseMs)
      }
    }
  }
  return Object.fromEntries([...values].map(([name, list]) => [name, summarize(list)]))
}

/** Calls before a measurement: V8 interprets the code of the host at first, and compiles it in the course of hundreds of calls. */
export const WARM_UP = 600

/** Waits between two measurements. */
export function pause(milliseconds: number): Promise<void> {
  return sleep(milliseconds)
}
