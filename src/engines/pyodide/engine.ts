import { randomUUID } from 'node:crypto'
import { SandglassError, shortageError } from '../../errors/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import {
  type CreateOptions,
  type Ending,
  type Sandbox,
  type SandboxEngine,
  INSIDE,
  type SandboxSpec,
  scratchSizes,
  unlessAborted,
} from '../../sandbox/index.ts'
import type { Bubblewrap } from './bubblewrap.ts'
import { Broker } from './broker.ts'
import { checkOptions } from './check-options.ts'
import { enforcedLimits, failedInside, MISSING_LIMITS, isolationOf } from './findings.ts'
import { type EngineEnvironment, findEnvironment, starterFor } from './environment.ts'
import { findSnapshot, makeSnapshot } from './snapshot-maker.ts'
import type { PyodideEngineOptions } from './options.ts'
import { probe } from './probe.ts'
import { Reserve } from './reserve.ts'
import type { Snapshot } from './snapshot-cache.ts'
import type { StartGuest } from './spare.ts'
import { WorkspaceBroker } from './workspace/broker.ts'

const STARTING = 'a sandbox was starting'
const DESTROYED: Ending = { cause: 'destroyed', exitCode: null, signal: null, by: 'host' }

/**
 * Runs Python compiled to WebAssembly in child processes of Node. It works wherever Node works; by itself it is not a boundary
 * of the operating system. Nothing is started before the first use.
 * @throws TypeError naming an option that is wrong or does not exist.
 */
export function pyodideEngine(options: PyodideEngineOptions = {}): SandboxEngine {
  checkOptions(options)
  const timeoutMs = options.startTimeoutMs ?? 60_000
  const reserve = new Reserve(options.reserveBytes)
  let found: EngineEnvironment | undefined
  let snapshot: Promise<Snapshot> | undefined
  let verified: Promise<boolean> | undefined
  const getEnvironment = (): EngineEnvironment => (found ??= findEnvironment(options))
  const forgetIfFailed = (loading: Promise<Snapshot>): Promise<Snapshot> => {
    loading.catch(() => (snapshot = undefined)) // may succeed next time
    return loading
  }
  const getSnapshot = (): Promise<Snapshot> => (snapshot ??= forgetIfFailed(findSnapshot(getEnvironment(), timeoutMs)))

  /** Verifies the digest of a cached snapshot while the first instance starts from it. */
  const isIntact = (given: Snapshot): Promise<boolean> => {
    if ('bytes' in given) return Promise.resolve(true)
    const { cache, key } = getEnvironment()
    verified ??= cache.isIntact(key)
    verified.catch(() => (verified = undefined))
    return verified
  }

  const create = (spec: SandboxSpec, given: CreateOptions = {}): Promise<Sandbox> =>
    createFrom(spec, given).catch((error: unknown) => {
      throw shortageError(error, 'no sandbox can be made') ?? error
    })

  const createFrom = async (spec: SandboxSpec, given: CreateOptions): Promise<Sandbox> => {
    const environment = getEnvironment()
    refuseAborted(given.signal)
    const id = `sg-${randomUUID()}`
    for (let attempt = 1; ; attempt += 1) {
      const bubblewrap = await unlessAborted(environment.bubblewrap(), given.signal, STARTING)
      const from = await unlessAborted(getSnapshot(), given.signal, STARTING)
      const start = await starterFor(environment, spec, from, id)
      refuseAborted(given.signal)
      const broker = brokerFor(spec, { start, startTimeoutMs: timeoutMs }, reserve)
      const [started, whole] = await Promise.allSettled([startBroker(broker, bubblewrap, given.signal), isIntact(from)])
      const isRight = whole.status === 'fulfilled' && whole.value
      if (started.status === 'fulfilled' && isRight) {
        return makeSandbox(id, broker, started.value, { bubblewrap, spec })
      }
      await broker.end(DESTROYED)
      const error = reasonOf(started, whole)
      if (error instanceof SandglassError && error.code === 'aborted') throw error
      // If a snapshot is damaged after its verification, instances do not start.
      const isDamaged = 'path' in from && !(await environment.cache.isIntact(environment.key))
      if (!isDamaged || attempt > 1) throw error
      verified = undefined
      snapshot = forgetIfFailed(makeSnapshot(environment, timeoutMs))
    }
  }

  return {
    name: 'pyodide',
    create,
    report: (given) => probe({ create: (spec) => create(spec, given), getEnvironment }),
    close() {
      found = snapshot = verified = undefined
      return Promise.resolve()
    },
  }
}

/** The reason why an attempt failed: the instance did not start, or the snapshot cannot be read or is damaged. */
function reasonOf(started: PromiseSettledResult<unknown>, whole: PromiseSettledResult<unknown>): unknown {
  for (const settled of [started, whole]) if (settled.status === 'rejected') return settled.reason
  return new SandglassError(
    'harness_start_failed',
    'the snapshot of Pyodide was damaged while instances started from it',
  )
}

type AnyBroker = Broker | WorkspaceBroker

/** A workspace has one owner, so it has no reserve. */
function brokerFor(
  spec: SandboxSpec,
  parts: { readonly start: StartGuest; readonly startTimeoutMs: number },
  reserve: Reserve,
): AnyBroker {
  if (spec.activities !== true) return new Broker({ ...parts, reserve, checker: spec.checker === true })
  const maxBytes = scratchSizes(spec.limits.diskBytes).workspace
  return new WorkspaceBroker({ ...parts, workspace: INSIDE.workspace, maxBytes })
}

async function startBroker(
  broker: AnyBroker,
  bubblewrap: Bubblewrap,
  signal: AbortSignal | undefined,
): Promise<ReadyFrame> {
  const ready = await unlessAborted(broker.start(), signal, STARTING)
  const failed = failedInside(ready.checks, bubblewrap)
  if (failed.length === 0) return ready
  throw new SandglassError('sandbox_setup_failed', `the sandbox failed its checks: ${failed.join('; ')}`)
}

function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new SandglassError('aborted', `aborted while ${STARTING}`)
}

function makeSandbox(
  id: string,
  broker: AnyBroker,
  ready: ReadyFrame,
  { bubblewrap, spec }: { readonly bubblewrap: Bubblewrap; readonly spec: SandboxSpec },
): Sandbox {
  const destroy = async (): Promise<void> => {
    await broker.end(DESTROYED)
    await broker.closed
  }
  return {
    id,
    info: {
      engine: 'pyodide',
      ...isolationOf(bubblewrap),
      python: ready.python,
      limitsEnforced: enforcedLimits(ready.checks),
      limitsMissing: MISSING_LIMITS,
      limits: spec.limits,
    },
    channel: broker.channel,
    ready,
    closed: broker.closed,
    // Python is refused memory instead of being killed; the run reports what the watchdog kills.
    memoryKills: () => null,
    recovered: () => broker.recovered(),
    ...(broker instanceof Broker ? { idleBytes: () => broker.idleBytes } : {}),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}
