import { randomBytes, randomUUID } from 'node:crypto'
import { type ErrorCode, messageOf, SandglassError } from '../../errors/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import {
  awaitReady,
  type CreateOptions,
  failedChecks,
  type IsolationLevel,
  type Sandbox,
  type SandboxEngine,
  type SandboxReport,
  type SandboxSpec,
  unlessAborted,
} from '../../sandbox/index.ts'
import { checkOptions } from './check-options.ts'
import { containerConfig, type ContainerPlan } from './container-config.ts'
import { explainedWords } from './explain.ts'
import { enforcedLimits, levelOf, missingLimits, openDescriptors } from './findings.ts'
import { hasCpuQuota } from './cpu-quota.ts'
import { Gate } from './gate.ts'
import { type Ground, planFor, prepare } from './ground.ts'
import { kernelNow } from './introduction.ts'
import type { ManagedContainer } from './managed-container.ts'
import type { DockerEngineOptions } from './options.ts'
import { type OutOfMemoryWatch, watchOutOfMemory } from './out-of-memory.ts'
import { LABEL, ownerLabels } from './owner.ts'
import { probe } from './probe.ts'
import { type CpuLimit, kindOf, type RuntimeKind } from './runtime-needs.ts'
import { SEAL_KEY_BYTES } from './seal.ts'
import { startContainer } from './start-container.ts'
import { Strays } from './strays.ts'
import { Uids } from './uids.ts'

/** How long a container may take to become ready when the options do not say. */
/** Making or starting a container takes a loaded daemon longer than anything else. */
const PATIENCE = 2
const START_MS = 30_000
const LOOKING = 'Docker was looked for'

/** A sandbox that is a container. */
export interface DockerSandbox extends Sandbox {
  readonly container: ManagedContainer
}

/** The engine whose sandboxes are containers. */
export interface DockerEngine extends SandboxEngine {
  create(spec: SandboxSpec, options?: CreateOptions): Promise<DockerSandbox>
}

/**
 * Sandboxes that are containers of a Docker daemon, here or elsewhere. Nothing is asked before the first use.
 * @throws TypeError naming the option that is wrong.
 */
export function dockerEngine(options: DockerEngineOptions = {}): DockerEngine {
  checkOptions(options)
  const strays = new Strays()
  const uids = new Uids()
  /** Containers that are started at the same time: as many as the daemon has processors. */
  let gate: Gate | undefined
  let labels: Readonly<Record<string, string>> | undefined
  let found: Promise<Ground> | undefined
  let watch: OutOfMemoryWatch | undefined
  const prepared = async (): Promise<Ground> => {
    labels ??= ownerLabels()
    const preparing = (found ??= prepare(options, labels))
    try {
      return await preparing
    } catch (error) {
      if (found === preparing) found = undefined // what is missing may be there next time
      throw error
    }
  }
  const createOn = async (at: Ground, spec: SandboxSpec, given: CreateOptions): Promise<DockerSandbox> => {
    void strays.sweep(at.daemon)
    // A daemon that was started anew knows nothing of who listened to the old one.
    if (watch?.isOver !== false) watch = watchOutOfMemory(at)
    const listening = watch
    gate ??= new Gate(Math.max(2, at.info.cpus))
    return gate.pass(() => createSandbox({ at, options, spec, given, strays, uids, watch: listening }), given.signal)
  }
  /** Makes one on what was found, which is looked for anew where the error says that it does not hold any more. */
  const attempt = async (spec: SandboxSpec, given: CreateOptions): Promise<Attempt> => {
    const work = prepared()
    const before = found
    const at = await unlessAborted(work, given.signal, LOOKING)
    try {
      return { at, sandbox: await createOn(at, spec, given) }
    } catch (error) {
      const code = codeOf(error)
      if (found === before && code !== undefined && OUTDATING.has(code)) found = undefined
      return { at, error }
    }
  }
  const create = async (spec: SandboxSpec, given: CreateOptions = {}): Promise<DockerSandbox> => {
    const first = await attempt(spec, given)
    if ('sandbox' in first) return first.sandbox
    if (codeOf(first.error) !== 'image_missing') throw first.error
    // It was removed, or its name stands for another one since.
    const anew = await unlessAborted(prepared(), given.signal, LOOKING)
    if (anew.image.id === first.at.image.id) throw first.error
    const second = await attempt(spec, given)
    if ('sandbox' in second) return second.sandbox
    throw second.error
  }
  return {
    name: 'docker',
    create,
    report: (given): Promise<SandboxReport> => probe({ prepared, create: (spec) => create(spec, given) }),
    async close() {
      const at = await found?.catch(() => undefined)
      watch?.close()
      watch = undefined
      found = undefined
      if (at !== undefined) await strays.sweep(at.daemon)
    },
  }
}

/** What one call of `create` came to on what was found at the time. */
type Attempt =
  | { readonly at: Ground; readonly sandbox: DockerSandbox }
  | { readonly at: Ground; readonly error: unknown }

/** Errors after which daemon, image or runtime may be others than they were: what was found is then looked for anew. */
const OUTDATING: ReadonlySet<ErrorCode> = new Set([
  'architecture_unsupported',
  'docker_permission',
  'docker_tls',
  'docker_unreachable',
  'harness_start_failed',
  'image_missing',
  'no_space',
  'python_missing',
  'runtime_unknown',
  'sandbox_setup_failed',
] as const)

interface Creation {
  readonly at: Ground
  readonly options: DockerEngineOptions
  readonly spec: SandboxSpec
  readonly given: CreateOptions
  readonly strays: Strays
  readonly uids: Uids
  readonly watch: OutOfMemoryWatch
}

async function createSandbox(creation: Creation): Promise<DockerSandbox> {
  const { needs } = creation.at
  const first = await createFor(needs.kind, creation)
  if (typeof first === 'object') return first
  needs.kind = first
  const second = await createFor(first, creation)
  if (typeof second === 'object') return second
  throw new SandglassError('sandbox_setup_failed', 'the runtime of the Docker daemon is another in each container')
}

/** Gives back what the runtime is, when the container was made for another. */
async function createFor(kind: RuntimeKind, creation: Creation): Promise<DockerSandbox | RuntimeKind> {
  const { at, options, spec, uids } = creation
  const id = `sandglass-${randomUUID()}`
  const uid = uids.draw(at.info)
  let container: ManagedContainer | undefined
  try {
    const plan = await planFor(at, options, spec, { id, uid, kind })
    container = await started(plan, creation)
    return await checked(container, plan, kind, creation)
  } finally {
    if (container === undefined) uids.giveBack(uid)
    else void container.closed.then(() => uids.giveBack(uid))
  }
}

function started(plan: ContainerPlan, { at, given, strays }: Creation): Promise<ManagedContainer> {
  const labels = { ...plan.labels, [LABEL.sandbox]: plan.id, [LABEL.created]: new Date().toISOString() }
  return startContainer(at.daemon, {
    name: plan.id,
    config: containerConfig({ ...plan, labels }),
    input: at.bundle.bytes,
    sealKey: plan.sealed ? randomBytes(SEAL_KEY_BYTES) : undefined,
    strays,
    // Longer than other requests may take, and not so long that a daemon that fell silent holds a pool up.
    timeoutMs: PATIENCE * at.daemon.timeoutMs,
    signal: given.signal,
  })
}

async function checked(
  container: ManagedContainer,
  plan: ContainerPlan,
  kind: RuntimeKind,
  { at, options, given, watch }: Creation,
): Promise<DockerSandbox | RuntimeKind> {
  watch.add(container)
  try {
    const ready = await awaitReady(container.channel, {
      timeoutMs: options.startTimeoutMs ?? START_MS,
      ...(given.signal === undefined ? {} : { signal: given.signal }),
      lastWords: () => container.lastWords(),
    })
    const actual = kindOf(ready.checks)
    if (actual !== kind) {
      await container.kill()
      return actual
    }
    const failed = [
      ...failedChecks(ready.checks),
      ...wrongUid(ready, plan),
      ...openDescriptors(ready.checks, plan.sealed),
    ]
    if (failed.length > 0) {
      throw new SandglassError('sandbox_setup_failed', `the container is not as it must be: ${failed.join('; ')}`)
    }
    const cpu = await lookAtCpu(at, container, ready.checks, plan.cpus)
    return sandboxOf(at, plan, container, ready, cpu, await levelIn(at, ready.checks))
  } catch (error) {
    await container.kill()
    throw explained(error, container.lastWords(), at.image.name)
  }
}

function sandboxOf(
  at: Ground,
  plan: ContainerPlan,
  container: ManagedContainer,
  ready: ReadyFrame,
  { hasQuota, canChange }: CpuLimit,
  level: IsolationLevel,
): DockerSandbox {
  const { id, limits, cpus, overhead } = plan
  const limitsEnforced = enforcedLimits({ ...limits, cpus }, { overhead, checks: ready.checks, hasQuota })
  const destroy = (): Promise<void> => container.kill()
  return {
    id,
    info: {
      engine: 'docker',
      level,
      python: ready.python,
      network: ready.checks['interfaces'] === 'lo' ? 'none' : 'open',
      limitsEnforced,
      limitsMissing: missingLimits(limitsEnforced),
      limits,
    },
    container,
    channel: container.channel,
    ready,
    closed: container.closed,
    // The harness counts, and tells with each run's end: the daemon may be far away.
    memoryKills: () => (limitsEnforced.includes('memory') ? 0 : null),
    ...(limitsEnforced.includes('cpu') && canChange
      ? { liftCpuLimit: () => container.liftCpuLimit(at.info.cpus, cpus) }
      : {}),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}

/** What the harness sees itself is as every runtime does it. Else the daemon is asked once: its runtime is the same for all. */
async function lookAtCpu(
  { daemon, needs }: Ground,
  container: ManagedContainer,
  checks: ReadyFrame['checks'],
  cpus: number,
): Promise<CpuLimit> {
  if (checks['cpu_limit'] !== null) return { hasQuota: false, canChange: true }
  if (needs.cpu !== undefined) return needs.cpu
  const hasQuota = await hasCpuQuota(daemon, container.id)
  const canChange = await container.canChangeCpus(cpus)
  const cpu = { hasQuota: hasQuota === true, canChange: canChange === true }
  // A daemon that gave no answer may give one the next time.
  if (hasQuota !== undefined && canChange !== undefined) needs.cpu = cpu
  return cpu
}

/** A kernel that is not the daemon's may be that of its machine since it was started anew: no wall is claimed before that is ruled out. */
async function levelIn({ daemon, kernel }: Ground, checks: ReadyFrame['checks']): Promise<IsolationLevel> {
  const level = levelOf(checks, kernel)
  return level === 'vm' ? levelOf(checks, await kernelNow(daemon)) : level
}

/** A daemon can be told to run containers as somebody else than it was asked for. */
function wrongUid({ checks }: ReadyFrame, { uid }: ContainerPlan): string[] {
  return checks['uid'] === uid ? [] : [`it runs as uid ${String(checks['uid'])} and must run as uid ${uid}`]
}

function explained(error: unknown, words: string, image: string): unknown {
  if (codeOf(error) === 'aborted') return error
  const known = explainedWords(words, image, error)
  if (known !== undefined) return known
  return error instanceof SandglassError
    ? error
    : new SandglassError('sandbox_setup_failed', messageOf(error), { cause: error })
}

function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof SandglassError ? error.code : undefined
}
