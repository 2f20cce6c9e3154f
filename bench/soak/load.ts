import { errnoOf, messageOf } from '../../src/errors/index.ts'
import type { Bed, Kind } from './kind.ts'
import { makeSharedLock } from './lock.ts'
import type { Random } from '../../test/support/random.ts'

/** A run that is not settled by then never is: the longest deadline and the pool's wait are far below. */
const HUNG_MS = 180_000

/** A run that did not come out as it must. */
export interface Unexpected {
  readonly kind: string
  readonly said: string
}

/** What happened since it was asked for last. */
export interface Tally {
  readonly runs: number
  readonly byKind: ReadonlyMap<string, number>
  /** Of the runs of kind `quick`, in milliseconds: the others measure deadlines. */
  readonly quickMs: readonly number[]
  readonly unexpected: readonly Unexpected[]
}

/** Runs that go on until they are ended. */
export interface Load {
  /** Resolves when no run is under way; none starts until `resume`. */
  pause(): Promise<void>
  resume(): void
  take(): Tally
  /** Resolves when the last run is settled. */
  end(): Promise<void>
}

/** Each kind this often, so many at a time, in an order that the seed decides. */
export async function eachKind(
  bed: Bed,
  kinds: readonly Kind[],
  random: Random,
  { times, atOnce }: { readonly times: number; readonly atOnce: number },
): Promise<Tally> {
  const left = Array.from({ length: times }, () => kinds).flat()
  return untilOver(bed, random, atOnce, () => left.splice(random.below(left.length), 1)[0])
}

async function untilOver(bed: Bed, random: Random, atOnce: number, next: () => Kind | undefined): Promise<Tally> {
  const load = startLoad(bed, next, random, atOnce)
  await load.over
  return load.take()
}

/** Starts workers, each of which runs one kind after the other, chosen by weight. */
export function startMixed(bed: Bed, kinds: readonly Kind[], random: Random, atOnce: number): Load {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0)
  const choose = (): Kind | undefined => {
    let left = random.fraction() * total
    return kinds.find(({ weight }) => (left -= weight) < 0)
  }
  return startLoad(bed, choose, random, atOnce)
}

function startLoad(
  bed: Bed,
  next: () => Kind | undefined,
  random: Random,
  atOnce: number,
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
      const said = isEnded ? undefined : await settled(kind, bed, random)
      if (kind.name === 'quick') tally.quickMs.push(performance.now() - start)
      tally.runs += 1
      tally.byKind.set(kind.name, (tally.byKind.get(kind.name) ?? 0) + 1)
      if (said !== undefined) tally.unexpected.push({ kind: kind.name, said })
      leave()
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

/** What was not as expected; an error that nobody expected is that, too. */
async function settled(kind: Kind, bed: Bed, random: Random): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const hung = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`not settled within ${HUNG_MS / 1000} s`), HUNG_MS)
  })
  try {
    return await Promise.race([kind.run(bed, random), hung])
  } catch (error) {
    return `thrown: ${errnoOf(error) ?? ''} ${messageOf(error)}`
  } finally {
    clearTimeout(timer)
  }
}
