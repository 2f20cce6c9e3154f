import type { Channel, Sandbox } from './contract.ts'

/** The CPU time of sandboxes that have run scripts; null if a part of it is unknown. Wrappers of a sandbox share its channel. */
const noted = new WeakMap<Channel, number | null>()

/**
 * Notes the CPU time of a sandbox after one more run.
 * @param last the last frame of the run, without a count if nothing ran; undefined if there was none.
 */
export function noteCpuTime(
  { channel }: Sandbox,
  last: { readonly cpu_time_ms?: number | undefined } | undefined,
): void {
  if (last === undefined) noted.set(channel, null)
  else if (last.cpu_time_ms !== undefined && noted.get(channel) !== null) noted.set(channel, last.cpu_time_ms)
}

/** The CPU time that a sandbox has used from its start to the end of its last run, in milliseconds; null if it is unknown. */
export function cpuTimeOf({ channel, ready }: Sandbox): number | null {
  const atStart = ready.checks['cpu_time_ms']
  if (typeof atStart !== 'number') return null
  const latest = noted.get(channel)
  return latest === undefined ? atStart : latest
}

/** The sum of times; null if one of them is unknown. */
export function sumOfTimes(times: Iterable<number | null>): number | null {
  let sum = 0
  for (const time of times) {
    if (time === null) return null
    sum += time
  }
  return sum
}
