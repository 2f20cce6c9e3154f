import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../test/support/eventually.ts'
import { processOf } from '../../test/support/processes.ts'
import type { FaultKind, FaultContext } from './fault.ts'
import { COMPLETED } from './faults/bounds.ts'
import type { ChaosHost, RunHandle, SettledCall } from './host.ts'
import type { Script } from './host-calls.ts'
import type { Lane } from './lane.ts'
import { startLoad } from './load.ts'
import type { Random } from '../../test/support/random.ts'
import { rolesIn } from './site.ts'

/** The outcome of one fault. */
export interface StrikeResult {
  /** Outcome of the run in the sandbox that was hit. */
  readonly said: string
  /** Time from the start of the fault, or from its end, until the last hit run settled. */
  readonly settleMs: number
  /** Outcomes of the runs that began during the fault, with their counts. */
  readonly meanwhile: Readonly<Record<string, number>>
  /** Time from the end of the fault to the next successful run. */
  readonly recoveryMs: number
  readonly left: readonly string[]
  /** True if it broke no expectation but its bound on time, to which other work on the machine adds. */
  readonly isOnlyLate: boolean
  /** Descriptions of everything that broke a bound or an expectation. */
  readonly breaches: readonly string[]
}

const BEGIN_MS = 120_000
const MAX_ATTEMPTS = 5
/** Includes the start of a new host after a killed one. */
const RECOVERY_MS = 60_000
const REFUSAL_MS = 30_000
const CLEAN_MS = 5000
/** Allowed time from an abort by the caller to the answer. */
const ABORT_MS = 3000
const CANCELLED = [/^cancelled\/cancelled: cancelled /]
/** Extra wait after the bound, to tell a late run from a hung one. */
const NEVER_MS = 60_000
const NEVER: SettledCall = { said: 'never settled', sandbox: '', at: Number.POSITIVE_INFINITY }

/** Injects a fault into a host under light load and checks the outcome. */
export async function strike(lane: Lane, kind: FaultKind, random: Random, stopMs: number): Promise<StrikeResult> {
  const breaches: string[] = []
  const host = await lane.host(kind.fakedClock === true)
  const { runs, victim, pids } = await startVictims(lane, host, kind, random)
  const [hit, ...rest] = runs
  const { site, clockFile } = lane
  const context: FaultContext = { site, host, victim, stopMs, random, clockFile }

  const before = performance.now()
  const lift = await kind.strike(context)
  // A host that the kernel kills is already gone when `strike` returns.
  let from: number = kind.endsHost === true ? performance.now() : before
  const orphans = kind.endsHost === true ? untilGone(pids, kind.boundMs) : { at: from }
  const load = startLoad(site, host, kind)
  const capMs = kind.boundMs + NEVER_MS
  const hits = kind.others === undefined ? [hit] : runs
  if (kind.boundFrom === 'lift') await sleep(kind.holdMs?.(stopMs) ?? 0)
  else {
    await Promise.all(hits.map((run) => waitForSettled(run, capMs)))
    if (kind.refuses === true) await load.refusal(REFUSAL_MS)
    await sleep(Math.max(0, before + (kind.holdMs?.(stopMs) ?? 0) - performance.now()))
  }
  if (kind.boundFrom === 'lift') from = performance.now()
  await lift()
  const lifted = performance.now()
  const outcomes = await Promise.all(hits.map((run) => waitForSettled(run, capMs)))
  const gone: { at: number; problem?: string } = await orphans
  if (gone.problem !== undefined) breaches.push(gone.problem)
  const settleMs = (kind.endsHost === true ? gone.at : Math.max(...outcomes.map(({ at }) => at))) - from
  const isLate = settleMs > kind.boundMs
  if (isLate) breaches.push(`settled after ${Math.round(settleMs)} ms; the limit is ${kind.boundMs} ms`)
  for (const [index, { said }] of outcomes.entries()) {
    const allowed = index === 0 ? kind.victim : (kind.others ?? [])
    if (!allowed.some((pattern) => pattern.test(said)))
      breaches.push(`unexpected outcome of run ${index + 1}: ${said} ${host.stderr()}`)
  }
  if (kind.others === undefined) breaches.push(...(await abort(rest)))
  breaches.push(...(await load.stop()))

  const recoveryMs = await recovery(lane, lifted, breaches)
  const left = await waitUntilClean(lane)
  breaches.push(...left.map((what) => `left: ${what}`))
  const isOnlyLate = isLate && breaches.length === 1
  return { said: outcomes[0]?.said ?? '', settleMs, meanwhile: load.counts(), recoveryMs, left, isOnlyLate, breaches }
}

/** Runs whose scripts have all begun. */
interface StartedRuns {
  readonly runs: readonly [RunHandle, ...RunHandle[]]
  readonly victim: string
  /** All processes of the sandboxes of the host. */
  readonly pids: readonly number[]
}

/** Starts two runs, and retries: on a busy machine the first can end before the second has begun. */
async function startVictims(lane: Lane, host: ChaosHost, kind: FaultKind, random: Random): Promise<StartedRuns> {
  const moment = random.fraction() * 300
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    await waitForFullPool(host)
    const runs = await startRuns(host, kind, random)
    const [victim] = await Promise.all(runs.map(waitForBegin))
    const pids = processesOf(lane, host)
    const over = await Promise.race([...runs.map((run) => run.settled), sleep(moment)])
    if (over === undefined && victim !== undefined) return { runs, victim, pids }
    if (over?.said === 'host gone') throw new Error(`the host ended before the fault: ${host.stderr()}`)
    for (const run of runs) run.abort()
    await Promise.all(runs.map((run) => waitForSettled(run, NEVER_MS)))
  }
  throw new Error(`two runs did not run concurrently in ${MAX_ATTEMPTS} attempts`)
}

async function waitForFullPool(host: ChaosHost): Promise<void> {
  const { said } = await host.ask('rest')
  if (said !== 'rests') throw new Error(said)
}

/** Starts a run that computes and one that calls a tool, in random order. The fault hits the first. */
async function startRuns(host: ChaosHost, kind: FaultKind, random: Random): Promise<readonly [RunHandle, RunHandle]> {
  const start = (script: Script): RunHandle => host.run(script, kind.workSec, kind.deadlineSec)
  // The fault must hit the run that takes memory, or the workspace.
  if (kind.script !== undefined) {
    const hit = start(kind.script)
    // On a busy machine sessions take longer to open than the other run lasts.
    if (kind.script === 'sessions') await waitForBegin(hit)
    return [hit, start('tools')]
  }
  return random.fraction() < 0.5 ? [start('compute'), start('tools')] : [start('tools'), start('compute')]
}

async function waitForBegin(run: RunHandle): Promise<string> {
  const id = await within(run.begun, BEGIN_MS, undefined)
  if (id !== undefined && id !== '') return id
  throw new Error(`a run did not begin: ${(await waitForSettled(run, 0)).said}`)
}

function waitForSettled(run: RunHandle, withinMs: number): Promise<SettledCall> {
  return within(run.settled, withinMs, NEVER)
}

async function abort(runs: readonly RunHandle[]): Promise<string[]> {
  const from = performance.now()
  for (const run of runs) run.abort()
  const answers = await Promise.all(runs.map((run) => waitForSettled(run, ABORT_MS + NEVER_MS)))
  return answers.flatMap(({ said, at }) => [
    ...(CANCELLED.some((pattern) => pattern.test(said))
      ? []
      : [`unexpected outcome of a run that was not hit: ${said}`]),
    ...(at - from > ABORT_MS
      ? [`a run that was not hit settled ${Math.round(at - from)} ms after its abort; the limit is ${ABORT_MS} ms`]
      : []),
  ])
}

/** All processes of all sandboxes of a host. */
function processesOf({ site }: Lane, host: ChaosHost): number[] {
  return site.look(host.pid).flatMap((id) => {
    const processes = site.engine.processesOf(id)
    return [...processes.map(({ pid }) => pid), rolesIn(processes).launcher ?? []].flat()
  })
}

/** Waits until all processes are gone, or will not be. */
async function untilGone(pids: readonly number[], boundMs: number): Promise<{ at: number; problem?: string }> {
  const left = await eventually(() => {
    const living = pids.filter((pid) => processOf(pid) !== undefined)
    return living.length === 0 ? undefined : `${living.length} of ${pids.length} processes still live`
  }, boundMs + NEVER_MS)
  return { at: performance.now(), ...(left === undefined ? {} : { problem: left }) }
}

/** Waits for a successful run on the same host, or on a new one with the same state. */
async function recovery(lane: Lane, lifted: number, breaches: string[]): Promise<number> {
  const problem = await eventually(async () => {
    const host = await lane.host(false)
    const { said } = await waitForSettled(host.run('short', 0, 5), RECOVERY_MS)
    return COMPLETED.some((pattern) => pattern.test(said)) ? undefined : said
  }, RECOVERY_MS)
  const recoveryMs = performance.now() - lifted
  if (problem !== undefined) breaches.push(`later runs do not work: ${problem}`)
  // An idle sandbox may have served that run. A full pool proves that new ones can be made.
  else await waitForFullPool(await lane.host(false)).catch((error: unknown) => breaches.push(`later: ${String(error)}`))
  return recoveryMs
}

async function waitUntilClean(lane: Lane): Promise<readonly string[]> {
  let found: readonly string[] = []
  const host = await lane.host(false)
  await eventually(async () => {
    found = await lane.site.left(host.pid)
    return found.length === 0 ? undefined : 'something is left'
  }, CLEAN_MS)
  return found
}

async function within<T, U>(work: Promise<T>, ms: number, otherwise: U): Promise<T | U> {
  const over = new AbortController()
  const late = sleep(ms, otherwise, { signal: over.signal }).catch(() => otherwise)
  try {
    return await Promise.race([work, late])
  } finally {
    over.abort()
  }
}
