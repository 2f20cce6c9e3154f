import { setTimeout as sleep } from 'node:timers/promises'
import { measureInTurns, summarize } from '../../bench/measure.ts'
import { cpuMs, descendantsOf } from '../../test/support/processes.ts'
import { processesIn } from '../../test/support/containers.ts'
import type { PeersDaemon } from './daemon.ts'
import type { Driver } from './driver.ts'
import type { Answer } from './drivers/serve.ts'
import type { MeasuredRow, Series } from './result.ts'

/** Prints 1 in every peer's Python; the caller's copy of the output is the result. */
export const SCRIPT = 'print(1)'
const CALLS = 200
const LOOP = 'while True:\n    pass'
const SECONDS = 1
/** The processor share of a living loop; on a machine with eight other processes per core it still has 5 %. */
const ALIVE_SHARE = 0.04
const WATCH_MS = 2000

/** Cold and warm runs of all drivers, in turn. */
export async function timeRuns(
  drivers: ReadonlyMap<string, Driver>,
  rounds: { readonly cold: number; readonly warm: number },
): Promise<Map<string, { cold: Series; warm: Series }>> {
  const series = (op: 'cold' | 'run'): Record<string, () => Promise<number>> =>
    Object.fromEntries([...drivers].map(([id, driver]) => [id, () => timeOne(driver, op)]))
  await measureInTurns(3, 5, series('run'))
  const warm = await measureInTurns(rounds.warm, 5, series('run'))
  await measureInTurns(1, 50, series('cold'))
  const cold = await measureInTurns(rounds.cold, 200, series('cold'))
  const of = (found: typeof warm, id: string): Series => {
    const { n, p50 } = found[id] ?? { n: 0, p50: Number.NaN }
    return { n, p50Ms: p50 }
  }
  return new Map([...drivers.keys()].map((id) => [id, { cold: of(cold, id), warm: of(warm, id) }]))
}

async function timeOne(driver: Driver, op: 'cold' | 'run'): Promise<number> {
  const { text, ms = Number.NaN, error } = await driver.ask(op, { code: SCRIPT })
  if (text?.trim() !== '1') throw new Error(`${op} did not print 1: ${error ?? text}`)
  return ms
}

/** The time that one call of a host function adds to a script: a loop with calls less the same loop without. */
export async function timeToolCalls(driver: Driver, rounds: number): Promise<Series> {
  const script = (body: string): string => `for i in range(${CALLS}):\n    ${body}\nprint(1)`
  const each: number[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const bare = await driver.ask('tool', { code: script('i') })
    if (bare.absent !== undefined) return { absent: bare.absent }
    const calls = await driver.ask('tool', { code: script('add(i, 1)') })
    const bad = [bare, calls].find(({ text }) => text?.trim() !== '1')
    if (bad !== undefined) throw new Error(`tool calls: ${bad.error}`)
    // The first round warms up.
    if (round > 0) each.push(((calls.ms ?? Number.NaN) - (bare.ms ?? Number.NaN)) / CALLS)
  }
  const { n, p50 } = summarize(each)
  return { n, p50Ms: p50 }
}

/** Measures the time from the deadline of an endless loop to the answer, and checks that the loop is gone a second later. */
export async function timeDeadline(
  driver: Driver,
  daemon: PeersDaemon | undefined,
  rounds: number,
): Promise<MeasuredRow['timeout']> {
  const over: number[] = []
  const started = new Set<number>()
  for (let round = 0; round < rounds; round += 1) {
    const asked = driver.ask('deadline', { code: LOOP, seconds: SECONDS })
    // Processes seen before the deadline are watched after it, even under another parent.
    const answered = asked.then(
      () => true,
      () => true,
    )
    while (!(await Promise.race([answered, sleep(100, false)]))) {
      for (const pid of descendantsOf(driver.pid)) started.add(pid)
    }
    const answer: Answer = await asked
    if (answer.absent !== undefined) return { absent: answer.absent }
    if (answer.error === undefined) throw new Error('an endless loop ended without an error')
    over.push((answer.ms ?? Number.NaN) - SECONDS * 1000)
  }
  const share = await lowestCpuShare(driver, daemon, started)
  const { n, p50 } = summarize(over)
  return { n, p50Ms: p50, cpuShareAfter: share, loopDead: share < ALIVE_SHARE }
}

/**
 * Processor time per second of all processes that the driver started, with containers: the minimum of three samples, because a
 * peer may be making its next sandbox.
 */
async function lowestCpuShare(
  driver: Driver,
  daemon: PeersDaemon | undefined,
  started: ReadonlySet<number>,
): Promise<number> {
  let least = Infinity
  await sleep(1000)
  for (let look = 0; look < 3; look += 1) {
    const inside = daemon?.containers().flatMap(({ id }) => processesIn(id).map(({ pid }) => pid)) ?? []
    const pids = [...new Set([driver.pid, ...started, ...descendantsOf(driver.pid), ...inside])]
    const used = (): number[] => pids.map((pid) => cpuMs(pid))
    const before = used()
    await sleep(WATCH_MS)
    const grown = used().map((after, at) => Math.max(0, after - (before[at] ?? 0)))
    least = Math.min(least, grown.reduce((sum, ms) => sum + ms, 0) / WATCH_MS)
    if (least < ALIVE_SHARE) break
  }
  return least
}
