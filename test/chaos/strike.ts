import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { processOf } from '../support/processes.ts'
import type { FaultKind, Ground } from './fault.ts'
import { COMPLETED } from './faults/bounds.ts'
import type { ChaosHost, Flight, Settled } from './host.ts'
import type { Script } from './host-calls.ts'
import type { Lane } from './lane.ts'
import { startLoad } from './load.ts'
import type { Random } from '../support/random.ts'
import { rolesIn } from './site.ts'

/** What came of one fault. */
export interface Struck {
  /** What the run in the sandbox that was hit came to. */
  readonly said: string
  /** From the blow, or its end, to the last of the hit runs. */
  readonly settleMs: number
  /** How often runs that began meanwhile came to what. */
  readonly meanwhile: Readonly<Record<string, number>>
  /** From the end of the fault to a run that is good again. */
  readonly recoveryMs: number
  readonly left: readonly string[]
  /** Everything that should not be, in words. */
  readonly breaches: readonly string[]
}

const BEGIN_MS = 120_000
const MOST_TAKE_OFFS = 5
/** A host that was killed has a new one by then, too. */
const RECOVERY_MS = 60_000
const REFUSAL_MS = 30_000
const CLEAN_MS = 5000
/** From a caller's abort to the answer. */
const ABORT_MS = 3000
const CANCELLED = [/^cancelled\/cancelled: cancelled /]
/** Beyond the bound: to tell late from never. */
const NEVER_MS = 60_000
const NEVER: Settled = { said: 'never settled', sandbox: '', at: Number.POSITIVE_INFINITY }

/** Lets a fault strike a host under light load, and looks at what comes of it. */
export async function strike(lane: Lane, kind: FaultKind, random: Random, stopMs: number): Promise<Struck> {
  const breaches: string[] = []
  const host = await lane.host(kind.fakedClock === true)
  const { flights, victim, pids } = await underWay(lane, host, kind, random)
  const [hit, ...rest] = flights
  const { site, clockFile } = lane
  const ground: Ground = { site, host, victim, stopMs, random, clockFile }

  const before = performance.now()
  const lift = await kind.strike(ground)
  // A host that the kernel ends is gone when `strike` returns.
  let from: number = kind.endsHost === true ? performance.now() : before
  const orphans = kind.endsHost === true ? untilGone(pids, kind.boundMs) : { at: from }
  const load = startLoad(site, host, kind)
  const capMs = kind.boundMs + NEVER_MS
  const hits = kind.others === undefined ? [hit] : flights
  if (kind.boundFrom === 'lift') await sleep(kind.holdMs?.(stopMs) ?? 0)
  else {
    await Promise.all(hits.map((flight) => settledOf(flight, capMs)))
    if (kind.refuses === true) await load.refusal(REFUSAL_MS)
    await sleep(Math.max(0, before + (kind.holdMs?.(stopMs) ?? 0) - performance.now()))
  }
  if (kind.boundFrom === 'lift') from = performance.now()
  await lift()
  const lifted = performance.now()
  const outcomes = await Promise.all(hits.map((flight) => settledOf(flight, capMs)))
  const gone: { at: number; problem?: string } = await orphans
  if (gone.problem !== undefined) breaches.push(gone.problem)
  const settleMs = (kind.endsHost === true ? gone.at : Math.max(...outcomes.map(({ at }) => at))) - from
  if (settleMs > kind.boundMs) breaches.push(`settled after ${Math.round(settleMs)} ms`)
  for (const [index, { said }] of outcomes.entries()) {
    const allowed = index === 0 ? kind.victim : (kind.others ?? [])
    if (!allowed.some((pattern) => pattern.test(said)))
      breaches.push(`run ${index + 1} came to: ${said} ${host.words()}`)
  }
  if (kind.others === undefined) breaches.push(...(await abort(rest)))
  breaches.push(...(await load.stop()))

  const recoveryMs = await recovery(lane, lifted, breaches)
  const left = await leftOn(lane)
  breaches.push(...left.map((what) => `left: ${what}`))
  return { said: outcomes[0]?.said ?? '', settleMs, meanwhile: load.counts(), recoveryMs, left, breaches }
}

/** Runs that are all under way. */
interface UnderWay {
  readonly flights: readonly [Flight, ...Flight[]]
  readonly victim: string
  /** The processes of all sandboxes of the host. */
  readonly pids: readonly number[]
}

/** On a busy machine the first may be over when the second has its sandbox, or when both were looked at. */
async function underWay(lane: Lane, host: ChaosHost, kind: FaultKind, random: Random): Promise<UnderWay> {
  const moment = random.fraction() * 300
  for (let attempt = 0; attempt < MOST_TAKE_OFFS; attempt += 1) {
    await fullPool(host)
    const flights = takeOff(host, kind, random)
    const [victim] = await Promise.all(flights.map(begunOf))
    const pids = processesOf(lane, host)
    const over = await Promise.race([...flights.map((flight) => flight.settled), sleep(moment)])
    if (over === undefined && victim !== undefined) return { flights, victim, pids }
    if (over?.said === 'host gone') throw new Error(`the host ended before the fault: ${host.words()}`)
    for (const flight of flights) flight.abort()
    await Promise.all(flights.map((flight) => settledOf(flight, NEVER_MS)))
  }
  throw new Error(`two runs were not under way at one time in ${MOST_TAKE_OFFS} attempts`)
}

async function fullPool(host: ChaosHost): Promise<void> {
  const { said } = await host.ask('rest')
  if (said !== 'rests') throw new Error(said)
}

/** One that computes and one that calls a tool, in a random order: the first is the one that is hit. */
function takeOff(host: ChaosHost, kind: FaultKind, random: Random): readonly [Flight, Flight] {
  const start = (script: Script): Flight => host.run(script, kind.workSec, kind.deadlineSec)
  // What takes memory is what is hit.
  if (kind.script !== undefined) return [start(kind.script), start('tools')]
  return random.fraction() < 0.5 ? [start('compute'), start('tools')] : [start('tools'), start('compute')]
}

async function begunOf(flight: Flight): Promise<string> {
  const id = await within(flight.begun, BEGIN_MS, undefined)
  if (id !== undefined && id !== '') return id
  throw new Error(`a run did not begin: ${(await settledOf(flight, 0)).said}`)
}

function settledOf(flight: Flight, withinMs: number): Promise<Settled> {
  return within(flight.settled, withinMs, NEVER)
}

async function abort(flights: readonly Flight[]): Promise<string[]> {
  const from = performance.now()
  for (const flight of flights) flight.abort()
  const answers = await Promise.all(flights.map((flight) => settledOf(flight, ABORT_MS + NEVER_MS)))
  return answers.flatMap(({ said, at }) => [
    ...(CANCELLED.some((pattern) => pattern.test(said)) ? [] : [`a run that was not hit came to: ${said}`]),
    ...(at - from > ABORT_MS ? [`a run that was not hit was given up after ${Math.round(at - from)} ms`] : []),
  ])
}

/** All processes of all sandboxes of a host. */
function processesOf({ site }: Lane, host: ChaosHost): number[] {
  return site.look(host.pid).flatMap((id) => {
    const processes = site.engine.processesOf(id)
    return [...processes.map(({ pid }) => pid), rolesIn(processes).launcher ?? []].flat()
  })
}

/** When the last of them was gone. */
async function untilGone(pids: readonly number[], boundMs: number): Promise<{ at: number; problem?: string }> {
  const left = await eventually(() => {
    const living = pids.filter((pid) => processOf(pid) !== undefined)
    return living.length === 0 ? undefined : `${living.length} of ${pids.length} processes live on`
  }, boundMs)
  return { at: performance.now(), ...(left === undefined ? {} : { problem: left }) }
}

/** A run is good again: on the same host, or on a new one with the same state. */
async function recovery(lane: Lane, lifted: number, breaches: string[]): Promise<number> {
  const problem = await eventually(async () => {
    const host = await lane.host(false)
    const { said } = await settledOf(host.run('short', 0, 5), RECOVERY_MS)
    return COMPLETED.some((pattern) => pattern.test(said)) ? undefined : said
  }, RECOVERY_MS)
  const recoveryMs = performance.now() - lifted
  if (problem !== undefined) breaches.push(`later runs do not work: ${problem}`)
  // One that was idle may have served it where no new one can be made.
  else await fullPool(await lane.host(false)).catch((error: unknown) => breaches.push(`later: ${String(error)}`))
  return recoveryMs
}

async function leftOn(lane: Lane): Promise<readonly string[]> {
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
