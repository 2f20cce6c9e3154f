import { randomUUID } from 'node:crypto'
import { SandglassError, shortageError } from '../../errors/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import {
  type CreateOptions,
  type Ending,
  type Sandbox,
  type SandboxEngine,
  type SandboxSpec,
  unlessAborted,
} from '../../sandbox/index.ts'
import type { Box } from './box.ts'
import { Broker } from './broker.ts'
import { checkOptions } from './check-options.ts'
import { enforcedLimits, failedInside, MISSING_LIMITS, wallOf } from './findings.ts'
import { type Ground, prepare, starterFor } from './ground.ts'
import { findSnapshot, makeSnapshot } from './snapshot-maker.ts'
import type { PyodideEngineOptions } from './options.ts'
import { probe } from './probe.ts'
import type { Snapshot } from './snapshot-cache.ts'

const STARTING = 'a sandbox was starting'
const DESTROYED: Ending = { cause: 'destroyed', exitCode: null, signal: null, by: 'host' }

/**
 * Python compiled to WebAssembly, in child processes of Node: works wherever Node does, and is no boundary of the
 * operating system. Nothing is touched before the first use.
 * @throws TypeError naming an option that is wrong or does not exist.
 */
export function pyodideEngine(options: PyodideEngineOptions = {}): SandboxEngine {
  checkOptions(options)
  const timeoutMs = options.startTimeoutMs ?? 60_000
  let ground: Ground | undefined
  let found: Promise<Snapshot> | undefined
  let checked: Promise<boolean> | undefined
  const prepared = (): Ground => (ground ??= prepare(options))
  const forgettable = (finding: Promise<Snapshot>): Promise<Snapshot> => {
    finding.catch(() => (found = undefined)) // what is missing may be there next time
    return finding
  }
  const snapshot = (): Promise<Snapshot> => (found ??= forgettable(findSnapshot(prepared(), timeoutMs)))

  /** The digest of a cached snapshot is looked at while the first instance starts from it. */
  const isWhole = (given: Snapshot): Promise<boolean> => {
    if ('bytes' in given) return Promise.resolve(true)
    const { cache, key } = prepared()
    checked ??= cache.isWhole(key)
    checked.catch(() => (checked = undefined))
    return checked
  }

  const create = (spec: SandboxSpec, given: CreateOptions = {}): Promise<Sandbox> =>
    made(spec, given).catch((error: unknown) => {
      throw shortageError(error, 'no sandbox can be made') ?? error
    })

  const made = async (spec: SandboxSpec, given: CreateOptions): Promise<Sandbox> => {
    const at = prepared()
    refuseAborted(given.signal)
    const id = `sg-${randomUUID()}`
    for (let attempt = 1; ; attempt += 1) {
      const box = await unlessAborted(at.box(), given.signal, STARTING)
      const from = await unlessAborted(snapshot(), given.signal, STARTING)
      const start = await starterFor(at, spec, from, id)
      refuseAborted(given.signal)
      const broker = new Broker({ start, startTimeoutMs: timeoutMs, checker: spec.checker === true })
      const [started, whole] = await Promise.allSettled([readyOf(broker, box, given.signal), isWhole(from)])
      const isRight = whole.status === 'fulfilled' && whole.value
      if (started.status === 'fulfilled' && isRight) {
        return sandboxOf(id, broker, started.value, { box, spec })
      }
      await broker.end(DESTROYED)
      const error = reasonOf(started, whole)
      if (error instanceof SandglassError && error.code === 'aborted') throw error
      // A snapshot that was damaged after it had been found whole shows by instances that do not start.
      const isDamaged = 'path' in from && !(await at.cache.isWhole(at.key))
      if (!isDamaged || attempt > 1) throw error
      checked = undefined
      found = forgettable(makeSnapshot(at, timeoutMs))
    }
  }

  return {
    name: 'pyodide',
    create,
    report: (given) => probe({ create: (spec) => create(spec, given), prepared, snapshot }),
    close() {
      ground = found = checked = undefined
      return Promise.resolve()
    },
  }
}

/** Why no sandbox came of an instance: it did not start, or the snapshot could not be looked at, or that is not what it was. */
function reasonOf(started: PromiseSettledResult<unknown>, whole: PromiseSettledResult<unknown>): unknown {
  for (const settled of [started, whole]) if (settled.status === 'rejected') return settled.reason
  return new SandglassError(
    'harness_start_failed',
    'the snapshot of Pyodide was damaged while instances started from it',
  )
}

async function readyOf(broker: Broker, box: Box, signal: AbortSignal | undefined): Promise<ReadyFrame> {
  const ready = await unlessAborted(broker.start(), signal, STARTING)
  const failed = failedInside(ready.checks, box)
  if (failed.length === 0) return ready
  throw new SandglassError('sandbox_setup_failed', `the sandbox is not as it must be: ${failed.join('; ')}`)
}

function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new SandglassError('aborted', `aborted while ${STARTING}`)
}

function sandboxOf(
  id: string,
  broker: Broker,
  ready: ReadyFrame,
  { box, spec }: { readonly box: Box; readonly spec: SandboxSpec },
): Sandbox {
  const destroy = async (): Promise<void> => {
    await broker.end(DESTROYED)
    await broker.closed
  }
  return {
    id,
    info: {
      engine: 'pyodide',
      ...wallOf(box),
      python: ready.python,
      limitsEnforced: enforcedLimits(ready.checks),
      limitsMissing: MISSING_LIMITS,
      limits: spec.limits,
    },
    channel: broker.channel,
    ready,
    closed: broker.closed,
    // Python is refused memory instead of being killed; what the watchdog kills is told with the run.
    memoryKills: () => null,
    recovered: () => broker.recovered(),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}
