import { performance } from 'node:perf_hooks'
import { type FaultKind, nameOf } from './fault.ts'
import { FAULTS } from './faults/index.ts'
import { faketimeLibrary, Lane } from './lane.ts'
import { Random } from '../support/random.ts'
import { type EngineName, openSite } from './site.ts'
import { type Struck, strike } from './strike.ts'

/** What is to be struck, and how often. */
export interface CampaignOptions {
  readonly faults: number
  readonly seed: number
  readonly engines: readonly EngineName[]
  /** How long something is stopped, in milliseconds. */
  readonly stopMs: number
  /** Hosts of each engine that are struck at the same time. */
  readonly lanes: number
  /** Docker's. */
  readonly image?: string
  /** Only kinds whose name holds this. */
  readonly only?: string
  /** Told of each fault as it is over. */
  readonly onLine?: (line: string) => void
}

/** One fault of a campaign, with what came of it. */
export interface Entry extends Struck {
  readonly number: number
  readonly engine: EngineName
  readonly name: string
  readonly boundMs: number
  readonly boundWhy: string
}

/** A fault that is to be, in its place in the order. */
interface Planned {
  readonly number: number
  readonly engine: EngineName
  readonly kind: FaultKind
  readonly random: Random
}

/** Lets random faults strike; the seed gives their order, their targets and the moments. */
export async function campaign(options: CampaignOptions): Promise<readonly Entry[]> {
  const planned = planOf(options)
  const entries: Entry[] = []
  const lanes = options.engines.flatMap((engine) =>
    Array.from({ length: options.lanes }, (_, lane) =>
      planned.filter((one) => one.engine === engine).filter((_one, index) => index % options.lanes === lane),
    ),
  )
  const over = await Promise.allSettled(
    lanes.map((lane) =>
      workOff(lane, options, (entry) => {
        entries.push(entry)
        options.onLine?.(lineOf(entry))
      }),
    ),
  )
  const failed = over.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('; '))
  return entries.toSorted((one, other) => one.number - other.number)
}

/** The kinds that can be made to strike an engine here. */
export function kindsOf(engine: EngineName): {
  readonly kinds: readonly FaultKind[]
  readonly leftOut: string | undefined
} {
  const all = FAULTS.filter(({ engines }) => engines.includes(engine))
  if (faketimeLibrary() !== undefined) return { kinds: all, leftOut: undefined }
  const left = all.filter(({ fakedClock }) => fakedClock === true).map(nameOf)
  return {
    kinds: all.filter(({ fakedClock }) => fakedClock !== true),
    leftOut: `${left.join(', ')} (${engine}): Debian's package faketime is not installed`,
  }
}

/** Every kind of every engine in turn, each round in an order of its own. */
function planOf({ faults, seed, engines, only }: CampaignOptions): readonly Planned[] {
  const random = new Random(seed)
  const all = engines
    .flatMap((engine) => kindsOf(engine).kinds.map((kind) => ({ engine, kind })))
    .filter(({ engine, kind }) => only === undefined || `${engine} ${nameOf(kind)}`.includes(only))
  if (all.length === 0) throw new Error('no such fault')
  const planned: Planned[] = []
  while (planned.length < faults) {
    for (const { engine, kind } of random.shuffled(all)) {
      // Of its own: what one lane does changes nothing in another.
      const own = new Random(random.next())
      if (planned.length < faults) planned.push({ number: planned.length + 1, engine, kind, random: own })
    }
  }
  return planned
}

async function workOff(
  planned: readonly Planned[],
  { stopMs, image }: CampaignOptions,
  done: (entry: Entry) => void,
): Promise<void> {
  const [first] = planned
  if (first === undefined) return
  await using lane = new Lane(await openSite(first.engine, image))
  for (const { number, engine, kind, random } of planned) {
    const { boundMs, boundWhy } = kind
    const from = performance.now()
    const struck = await strike(lane, kind, random, stopMs).catch((error: unknown) => unexpected(error, from))
    done({ number, engine, name: nameOf(kind), boundMs, boundWhy, ...struck })
  }
}

function unexpected(error: unknown, from: number): Struck {
  const words = error instanceof Error ? error.message : String(error)
  const nothing = { meanwhile: {}, recoveryMs: 0, left: [] }
  return { said: 'the driver failed', settleMs: performance.now() - from, ...nothing, breaches: [words] }
}

/** One line for one fault: number, engine, fault, what was said, time, what is left. */
export function lineOf({
  number,
  engine,
  name,
  said,
  settleMs,
  boundMs,
  meanwhile,
  recoveryMs,
  left,
  breaches,
}: Entry): string {
  const runs = Object.entries(meanwhile).map(([what, count]) => `${count} ${what}`)
  return [
    `${String(number).padStart(3)} ${engine.padEnd(7)} ${name.padEnd(44)} ${said.split(':', 1)[0]}`,
    `${Math.round(settleMs)} of ${boundMs} ms`,
    `meanwhile ${runs.join(', ') || 'nothing'}`,
    `good again after ${Math.round(recoveryMs)} ms`,
    `left: ${left.length === 0 ? 'nothing' : left.length}`,
    ...breaches.map((breach) => `BREACH ${breach.trim()}`),
  ].join(' | ')
}
