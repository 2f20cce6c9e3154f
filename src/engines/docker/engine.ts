import { randomBytes, randomUUID } from 'node:crypto'
import { type ErrorCode, messageOf, SandglassError } from '../../errors/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import {
  awaitReady,
  CpuQuota,
  type CreateOptions,
  failedChecks,
  findOpenDescriptors,
  type IsolationLevel,
  type Sandbox,
  type SandboxEngine,
  type SandboxReport,
  type SandboxSpec,
  SEAL_KEY_BYTES,
  unlessAborted,
} from '../../sandbox/index.ts'
import { checkOptions } from './check-options.ts'
import { containerConfig, type ContainerPlan } from './container-config.ts'
import { explainOutput } from './explain.ts'
import { enforcedLimits, levelOf, missingLimits } from './findings.ts'
import { hasCpuQuota } from './cpu-quota.ts'
import { Semaphore } from '../../support/index.ts'
import { type EngineEnvironment, makePlan, prepare } from './environment.ts'
import { fetchKernel } from './daemon-info.ts'
import type { ManagedContainer } from './managed-container.ts'
import type { DockerEngineOptions } from './options.ts'
import { type OutOfMemoryWatch, watchOutOfMemory } from './out-of-memory.ts'
import { LABEL, ownerLabels } from './owner.ts'
import { probe } from './probe.ts'
import { type CpuLimit, kindOf, type RuntimeKind } from './runtime-needs.ts'
import { startContainer } from './start-container.ts'
import { OrphanRetry } from './orphan-retry.ts'
import { Uids } from './uids.ts'

/** Creating and starting a container may take this many times `apiTimeoutMs`: both are the slowest requests on a loaded daemon. */
const SLOW_REQUEST_FACTOR = 2
/** The default time that a container may take to become ready. */
const START_MS = 30_000
const CONNECTING = 'connecting to Docker'

/** A sandbox that is a container. */
export interface DockerSandbox extends Sandbox {
  readonly container: ManagedContainer
}

/** The engine whose sandboxes are containers. */
export interface DockerEngine extends SandboxEngine {
  create(spec: SandboxSpec, options?: CreateOptions): Promise<DockerSandbox>
}

/**
 * Makes sandboxes that are containers of a Docker daemon, on this machine or another. It sends no request before its first use.
 * @throws TypeError naming the option that is wrong.
 */
export function dockerEngine(options: DockerEngineOptions = {}): DockerEngine {
  checkOptions(options)
  const orphans = new OrphanRetry()
  const uids = new Uids()
  /** Limits the containers that are started at the same time to the daemon's processors. */
  let semaphore: Semaphore | undefined
  let labels: Readonly<Record<string, string>> | undefined
  let found: Promise<EngineEnvironment> | undefined
  let watch: OutOfMemoryWatch | undefined
  const getEnvironment = async (): Promise<EngineEnvironment> => {
    labels ??= ownerLabels()
    const preparing = (found ??= prepare(options, labels))
    try {
      return await preparing
    } catch (error) {
      if (found === preparing) found = undefined // a missing part may be available next time
      throw error
    }
  }
  const createOn = async (at: EngineEnvironment, spec: SandboxSpec, given: CreateOptions): Promise<DockerSandbox> => {
    void orphans.removeAll(at.daemon)
    // A restarted daemon does not know the listeners of the old one.
    if (watch?.isOver !== false) watch = watchOutOfMemory(at)
    const listening = watch
    semaphore ??= new Semaphore(Math.max(2, at.info.cpus))
    return semaphore.run(
      () => createSandbox({ at, options, spec, given, orphans, uids, watch: listening }),
      given.signal,
    )
  }
  /** Makes a sandbox in the cached environment, which is dropped if the error shows that it is outdated. */
  const attempt = async (spec: SandboxSpec, given: CreateOptions): Promise<Attempt> => {
    const work = getEnvironment()
    const before = found
    const at = await unlessAborted(work, given.signal, CONNECTING)
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
    // The image was removed, or its name now refers to another one.
    const current = await unlessAborted(getEnvironment(), given.signal, CONNECTING)
    if (current.image.id === first.at.image.id) throw first.error
    const second = await attempt(spec, given)
    if ('sandbox' in second) return second.sandbox
    throw second.error
  }
  return {
    name: 'docker',
    place: process.env['DOCKER_HOST'] ?? '',
    create,
    report: (given): Promise<SandboxReport> => probe({ getEnvironment, create: (spec) => create(spec, given) }),
    async close() {
      const at = await found?.catch(() => undefined)
      watch?.close()
      watch = undefined
      found = undefined
      if (at !== undefined) await orphans.removeAll(at.daemon)
    },
  }
}

/** The outcome of one try of `create`, with the environment that it used. */
type Attempt =
  | { readonly at: EngineEnvironment; readonly sandbox: DockerSandbox }
  | { readonly at: EngineEnvironment; readonly error: unknown }

/** Errors after which daemon, image or runtime may have changed: the environment is then prepared again. */
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
  readonly at: EngineEnvironment
  readonly options: DockerEngineOptions
  readonly spec: SandboxSpec
  readonly given: CreateOptions
  readonly orphans: OrphanRetry
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
  throw new SandglassError(
    'sandbox_setup_failed',
    'two containers of the Docker daemon ran on different runtimes; ' +
      'give the daemon one default runtime, or set docker.runtime',
  )
}

/** Resolves to the actual kind of the runtime if the container was planned for another kind. */
async function createFor(kind: RuntimeKind, creation: Creation): Promise<DockerSandbox | RuntimeKind> {
  const { at, options, spec, uids } = creation
  const id = `sandglass-${randomUUID()}`
  const uid = uids.draw(at.info)
  let container: ManagedContainer | undefined
  try {
    const plan = await makePlan(at, options, spec, { id, uid, kind })
    container = await startPlanned(plan, creation)
    return await verifyStarted(container, plan, kind, creation)
  } finally {
    if (container === undefined) uids.release(uid)
    else void container.closed.then(() => uids.release(uid))
  }
}

function startPlanned(plan: ContainerPlan, { at, given, orphans }: Creation): Promise<ManagedContainer> {
  const labels = { ...plan.labels, [LABEL.sandbox]: plan.id, [LABEL.created]: new Date().toISOString() }
  return startContainer(at.daemon, {
    name: plan.id,
    config: containerConfig({ ...plan, labels }),
    input: at.bundle.bytes,
    sealKey: plan.sealed ? randomBytes(SEAL_KEY_BYTES) : undefined,
    sealsBothWays: plan.activities,
    orphans,
    // Longer than for other requests, but short enough that an unresponsive daemon does not block a pool.
    timeoutMs: SLOW_REQUEST_FACTOR * at.daemon.timeoutMs,
    signal: given.signal,
  })
}

async function verifyStarted(
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
      lastOutput: () => container.lastOutput(),
    })
    const actual = kindOf(ready.checks)
    if (actual !== kind) {
      await container.kill()
      return actual
    }
    const failed = [
      ...failedChecks(ready.checks),
      ...findUidProblem(ready, plan),
      ...findOpenDescriptors(ready.checks, plan.sealed),
    ]
    if (failed.length > 0) {
      throw new SandglassError('sandbox_setup_failed', `the container failed its checks: ${failed.join('; ')}`)
    }
    const cpu = await findCpuLimit(at, container, ready.checks, plan.cpus)
    return sandboxOf(at, plan, container, ready, cpu, await findLevel(at, ready.checks))
  } catch (error) {
    await container.kill()
    throw explainFailure(error, container.lastOutput(), at.image.name)
  }
}

function sandboxOf(
  at: EngineEnvironment,
  plan: ContainerPlan,
  container: ManagedContainer,
  ready: ReadyFrame,
  { hasQuota, canChange }: CpuLimit,
  level: IsolationLevel,
): DockerSandbox {
  const { id, limits, cpus, overhead } = plan
  const limitsEnforced = enforcedLimits({ ...limits, cpus }, { overhead, checks: ready.checks, hasQuota })
  const destroy = (): Promise<void> => container.kill()
  const cpu = new CpuQuota(cpus, (now) => container.setCpus(now ?? at.info.cpus))
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
    // The harness counts and reports them at the end of each run: the daemon may be remote.
    memoryKills: () => (limitsEnforced.includes('memory') ? 0 : null),
    ...(limitsEnforced.includes('cpu') && canChange
      ? { liftCpuLimit: () => cpu.lift(), lowerCpuLimit: (fewer: number) => cpu.lower(fewer) }
      : {}),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}

/**
 * Finds out whether the CPU limit is in force and can change. If the harness cannot see it, asks the daemon, and caches the
 * answer.
 */
async function findCpuLimit(
  { daemon, needs }: EngineEnvironment,
  container: ManagedContainer,
  checks: ReadyFrame['checks'],
  cpus: number,
): Promise<CpuLimit> {
  if (checks['cpu_limit'] !== null) return { hasQuota: false, canChange: true }
  if (needs.cpu !== undefined) return needs.cpu
  const hasQuota = await hasCpuQuota(daemon, container.id)
  const canChange = await container.canChangeCpus(cpus)
  const cpu = { hasQuota: hasQuota === true, canChange: canChange === true }
  // A daemon that did not answer may answer the next time.
  if (hasQuota !== undefined && canChange !== undefined) needs.cpu = cpu
  return cpu
}

/** The level of a container. Before `vm`, the daemon's kernel is fetched again: a restart may have changed it. */
async function findLevel({ daemon, kernel }: EngineEnvironment, checks: ReadyFrame['checks']): Promise<IsolationLevel> {
  const level = levelOf(checks, kernel)
  return level === 'vm' ? levelOf(checks, await fetchKernel(daemon)) : level
}

/** Describes a wrong uid: a daemon can be configured to run containers under another uid than requested. */
function findUidProblem({ checks }: ReadyFrame, { uid }: ContainerPlan): string[] {
  return checks['uid'] === uid ? [] : [`it runs as uid ${String(checks['uid'])} and must run as uid ${uid}`]
}

function explainFailure(error: unknown, stderr: string, image: string): unknown {
  if (codeOf(error) === 'aborted') return error
  const known = explainOutput(stderr, image, error)
  if (known !== undefined) return known
  return error instanceof SandglassError
    ? error
    : new SandglassError('sandbox_setup_failed', messageOf(error), { cause: error })
}

function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof SandglassError ? error.code : undefined
}
