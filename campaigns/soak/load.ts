import { pause } from '../../bench/measure.ts'
import { errnoOf, messageOf } from '../../src/errors/index.ts'
import type { RunContext, Kind } from './kind.ts'
import { makeSharedLock } from './lock.ts'
import type { Random } from '../../test/support/random.ts'

/** A run that takes longer is hung: the longest deadline and the wait of the pool are far shorter. */
const HUNG_MS = 180_000

/** A run with an unexpected outcome. */
export interface Unexpected {
  readonly kind: string
  readonly said: string
}

/** Counts since the last call of `take`. */
export interface Tally {
  readonly runs: number
  readonly byKind: ReadonlyMap<string, number>
  /** Durations of the runs of kind `quick`, in milliseconds; other kinds measure deadlines. */
  readonly quickMs: readonly number[]
  readonly unexpected: readonly Unexpected[]
}

/** Runs that repeat until `end` is called. */
export interface Load {
  /** Resolves when no run is active. New runs start after `resume`. */
  pause(): Promise<void>
  resume(): void
  take(): Tally
  /** Resolves when the last run has settled. */
  end(): Promise<void>
}

/** Runs each kind `times` times, `atOnce` at a time, in a random order from the seed. */
export async function eachKind(
  context: RunContext,
  kinds: readonly Kind[],
  random: Random,
  { times, atOnce }: { readonly times: number; readonly atOnce: number },
): Promise<Tally> {
  const left = Array.from({ length: times }, () => kinds).flat()
  return untilOver(context, random, atOnce, () => left.splice(random.below(left.length), 1)[0])
}

async function untilOver(
  context: RunContext,
  random: Random,
  atOnce: number,
  next: () => Kind | undefined,
): Promise<Tally> {
  const load = startLoad(context, next, random, atOnce)
  await load.over
  return load.take()
}

/** Starts workers that run random kinds, chosen by weight, and rest after each run. */
export function startMixed(
  context: RunContext,
  kinds: readonly Kind[],
  random: Random,
  atOnce: number,
  restSec = 0,
): Load {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0)
  const choose = (): Kind | undefined => {
    let left = random.fraction() * total
    return kinds.find(({ weight }) => (left -= weight) < 0)
  }
  return startLoad(context, choose, random, atOnce, restSec)
}

function startLoad(
  context: RunContext,
  next: () => Kind | undefined,
  random: Random,
  atOnce: number,
  restSec = 0,
): Load & { readonly over: Promise<unknown> } {
  const lock = makeSharedLock()
  let tally = emptyTally()
  let isEnded = false
  let resume: (() => void) | undefined

  async function work(): Promise<void> {
    while (!isEnded) {
      const kind = next()
      if (kind === undefined) return
      const leave = await lock.enter(false)
      const start = performance.now()
      const said = isEnded ? undefined : await runKind(kind, context, random)
      if (kind.name === 'quick') tally.quickMs.push(performance.now() - start)
      tally.runs += 1
      tally.byKind.set(kind.name, (tally.byKind.get(kind.name) ?? 0) + 1)
      if (said !== undefined) tally.unexpected.push({ kind: kind.name, said })
      leave()
      if (restSec > 0) await pause(restSec * 1000)
    }
  }

  const over = Promise.all(Array.from({ length: atOnce }, work))
  return {
    over,
    async pause() {
      resume = await lock.enter(true)
    },
    resume: () => resume?.(),
    take() {
      const taken = tally
      tally = emptyTally()
      return taken
    },
    async end() {
      isEnded = true
      resume?.()
      await over
    },
  }
}

function emptyTally(): { runs: number; byKind: Map<string, number>; quickMs: number[]; unexpected: Unexpected[] } {
  return { runs: 0, byKind: new Map(), quickMs: [], unexpected: [] }
}

/** Runs one kind. Returns a description of an unexpected outcome, which includes any thrown error. */
async function runKind(kind: Kind, context: RunContext, random: Random): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const hung = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`not settled within ${HUNG_MS / 1000} s`), HUNG_MS)
  })
  try {
    return await Promise.race([kind.run(context, random), hung])
  } catch (error) {
    return `thrown: ${errnoOf(error) ?? ''} ${messageOf(error)}`
  } finally {
    clearTimeout(timer)
  }
}
