import { performance } from 'node:perf_hooks'
import { type FaultKind, nameOf } from './fault.ts'
import { FAULTS } from './faults/index.ts'
import { faketimeLibrary, Lane } from './lane.ts'
import { Random } from '../../test/support/random.ts'
import type { MachineEngine } from '../../test/support/walls.ts'
import { openSite } from './site.ts'
import { type StrikeResult, strike } from './strike.ts'

/** Options of a campaign. */
export interface CampaignOptions {
  readonly faults: number
  readonly seed: number
  readonly engines: readonly MachineEngine[]
  /** Duration of a stop, in milliseconds. */
  readonly stopMs: number
  /** Number of hosts per engine that run at the same time. */
  readonly lanes: number
  /** The number of times that a fault is tried that breaks nothing but its bound on time. Default 1. */
  readonly attempts?: number
  /** Image for the engine docker. */
  readonly image?: string
  /** Run only the kinds whose name contains this text. */
  readonly only?: string
  /** Called with one line after each fault. */
  readonly onLine?: (line: string) => void
}

/** One fault of a campaign with its outcome. */
export interface Entry extends StrikeResult {
  readonly number: number
  readonly engine: MachineEngine
  readonly name: string
  readonly boundMs: number
  readonly boundWhy: string
}

/** A planned fault and its position in the order. */
interface PlannedFault {
  readonly number: number
  readonly engine: MachineEngine
  readonly kind: FaultKind
  readonly random: Random
}

/** Injects random faults. The seed decides their order, targets and times. */
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
      runLane(lane, options, (entry) => {
        entries.push(entry)
        options.onLine?.(lineOf(entry))
      }),
    ),
  )
  const failed = over.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('; '))
  return entries.toSorted((one, other) => one.number - other.number)
}

/** The kinds of fault that this machine can inject into an engine. */
export function kindsOf(engine: MachineEngine): {
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

/** Plans every kind of every engine in rounds, each round in a new order. */
function planOf({ faults, seed, engines, only }: CampaignOptions): readonly PlannedFault[] {
  const random = new Random(seed)
  const all = engines
    .flatMap((engine) => kindsOf(engine).kinds.map((kind) => ({ engine, kind })))
    .filter(({ engine, kind }) => only === undefined || `${engine} ${nameOf(kind)}`.includes(only))
  if (all.length === 0) throw new Error(`--only ${only}: no kind of fault contains this text`)
  const planned: PlannedFault[] = []
  while (planned.length < faults) {
    for (const { engine, kind } of random.shuffled(all)) {
      // A separate generator, so that lanes do not influence each other.
      const own = new Random(random.next())
      if (planned.length < faults) planned.push({ number: planned.length + 1, engine, kind, random: own })
    }
  }
  return planned
}

async function runLane(
  planned: readonly PlannedFault[],
  { stopMs, attempts = 1, image }: CampaignOptions,
  done: (entry: Entry) => void,
): Promise<void> {
  const [first] = planned
  if (first === undefined) return
  await using lane = new Lane(await openSite(first.engine, image))
  for (const { number, engine, kind, random } of planned) {
    const { boundMs, boundWhy } = kind
    const from = performance.now()
    let struck: StrikeResult
    let attempt = 0
    do {
      struck = await strike(lane, kind, random, stopMs).catch((error: unknown) => unexpected(error, from))
      attempt += 1
    } while (struck.isOnlyLate && attempt < attempts)
    done({ number, engine, name: nameOf(kind), boundMs, boundWhy, ...struck })
  }
}

function unexpected(error: unknown, from: number): StrikeResult {
  const message = error instanceof Error ? error.message : String(error)
  const nothing = { meanwhile: {}, recoveryMs: 0, left: [], isOnlyLate: false }
  return { said: 'the driver failed', settleMs: performance.now() - from, ...nothing, breaches: [message] }
}

/** Formats a fault as one line: number, engine, fault, outcome, times, orphans. */
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
