import { randomInt, randomUUID } from 'node:crypto'
import type { V1Pod } from '@kubernetes/client-node'
import { messageOf, SandglassError } from '../../errors/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import {
  awaitReady,
  type CreateOptions,
  failedChecks,
  findOpenDescriptors,
  type Sandbox,
  type SandboxEngine,
  type SandboxSpec,
  unlessAborted,
} from '../../sandbox/index.ts'
import { Semaphore } from '../../support/index.ts'
import { checkOptions } from './check-options.ts'
import { Deliveries } from './deliver.ts'
import { type EngineEnvironment, prepare } from './environment.ts'
import { enforcedLimits, missingLimits } from './findings.ts'
import { probeNetwork, RECHECK_SEC, recheckNetwork } from './network.ts'
import type { KubernetesEngineOptions } from './options.ts'
import type { ManagedPod } from './pod.ts'
import { findDirectories, isSent, mountedOf, sentBytes } from './pod-directories.ts'
import { assertUserNamespace } from './pod-features.ts'
import { heldLimits, placementOf, type PodPlan, TERMINATION_LOG } from './pod-spec.ts'
import { probe } from './probe.ts'
import { findFailure, startPod } from './start-pod.ts'

/** Pods that start at the same time: each asks the API server several times a second. */
const CONCURRENCY = 4
const START_MS = 60_000
const IMAGE = 'python:3.12-slim'
/** Uids of sandboxes: above those of people and services, below the limits of 32 bits. Each pod gets two. */
const FIRST_UID = 1_000_000
const UID_PAIRS = 1_000_000_000
/** In a user namespace a pod has at least 65,536 ids, which are those of no other pod. */
const FIRST_MAPPED_UID = 20_000
const MAPPED_UID_PAIRS = 20_000

/**
 * Makes sandboxes that are pods of a Kubernetes cluster. It sends no request before its first use.
 * @throws TypeError naming the option that is wrong.
 */
export function kubernetesEngine(options: KubernetesEngineOptions = {}): SandboxEngine {
  checkOptions(options)
  const semaphore = new Semaphore(CONCURRENCY)
  let found: Promise<EngineEnvironment> | undefined
  const getEnvironment = async (): Promise<EngineEnvironment> => {
    const preparing = (found ??= prepare(options))
    try {
      return await preparing
    } catch (error) {
      if (found === preparing) found = undefined // a missing part may be available next time
      throw error
    }
  }
  const create = async (spec: SandboxSpec, given: CreateOptions = {}): Promise<Sandbox> => {
    const at = await unlessAborted(getEnvironment(), given.signal, 'reading the configuration of Kubernetes')
    return semaphore.run(() => createSandbox({ at, options, spec, given }), given.signal)
  }
  return {
    name: 'kubernetes',
    place: `${options.kubeconfig ?? process.env['KUBECONFIG'] ?? ''} ${options.context ?? ''}`,
    copiesPackages: true,
    create,
    report: (given) =>
      probe({
        getEnvironment,
        create: (spec) => create(spec, given),
        image: options.image ?? IMAGE,
        runtimeClassName: options.runtimeClassName,
        probeNetwork: async (sandbox) => {
          const at = await getEnvironment()
          const plan = {
            ...podBasics(options),
            marks: at.marks,
            program: at.programs.reach,
            timeoutMs: START_MS,
            signal: given?.signal,
          }
          const abandon = (name: string): void => at.housekeeping.abandon(name)
          const finding = at.network ?? (await probeNetwork({ cluster: at.cluster, sandbox, plan, abandon }))
          if (finding.access === 'none') at.network = finding
          return finding
        },
      }),
    async close() {
      const at = await found?.catch(() => undefined)
      found = undefined
      at?.archives.close()
      await at?.housekeeping.close()
    },
  }
}

interface Creation {
  readonly at: EngineEnvironment
  readonly options: KubernetesEngineOptions
  readonly spec: SandboxSpec
  readonly given: CreateOptions
}

async function createSandbox(creation: Creation): Promise<Sandbox> {
  const { at } = creation
  const { gvisor } = at
  const first = await createFor(gvisor, creation)
  if (first !== undefined) return first
  at.gvisor = !gvisor
  const second = await createFor(!gvisor, creation)
  if (second !== undefined) return second
  throw new SandglassError(
    'sandbox_setup_failed',
    'one pod of the cluster ran on gVisor and another one did not; name a RuntimeClass with the option kubernetes.runtimeClassName',
  )
}

/** Resolves to undefined if the pod was planned for another kernel. */
async function createFor(gvisor: boolean, creation: Creation): Promise<Sandbox | undefined> {
  const { rootOnlyDirs } = creation.at
  for (;;) {
    const [directory = '', next] = rootOnlyDirs
    try {
      return await createWith(directory, gvisor, creation)
    } catch (error) {
      if (next === undefined || !messageOf(error).includes(`${directory}/${TERMINATION_LOG}`)) throw error
      if (rootOnlyDirs[0] === directory) rootOnlyDirs.shift()
    }
  }
}

function drawUid({ hostUsers }: KubernetesEngineOptions): number {
  return hostUsers === false ? FIRST_MAPPED_UID + 2 * randomInt(MAPPED_UID_PAIRS) : FIRST_UID + 2 * randomInt(UID_PAIRS)
}

/** Returns what all pods of an engine have in common. */
function podBasics(
  options: KubernetesEngineOptions,
): Pick<PodPlan, 'image' | 'python' | 'runtimeClassName' | 'placement'> {
  const { image = IMAGE, python = 'python3', runtimeClassName } = options
  return { image, python, runtimeClassName, placement: placementOf(options) }
}

async function createWith(
  rootOnlyDir: string,
  gvisor: boolean,
  { at, options, spec, given }: Creation,
): Promise<Sandbox | undefined> {
  const { signal, onWaiting = () => undefined } = given
  const timeoutMs = options.startTimeoutMs ?? START_MS
  const directories = await findDirectories(spec, options)
  const plan: PodPlan = {
    name: `sandglass-${randomUUID()}`,
    ...podBasics(options),
    rootOnlyDir,
    cpuRequest: options.cpuRequest,
    spec,
    directories,
    uid: drawUid(options),
    marks: at.marks,
    programs: at.programs,
    gvisor,
    // Sending directories has a time of its own.
    startSec: Math.ceil(((directories.some(isSent) ? 2 : 1) * timeoutMs) / 1000 + RECHECK_SEC),
  }
  const { cluster, housekeeping, network, archives } = at
  using deliveries = await Deliveries.pack(directories.filter(isSent), archives, signal)
  const complete = async (pod: V1Pod): Promise<void> => {
    if (network !== undefined) await recheckNetwork(network, cluster, pod, plan.python, signal)
    await deliveries.send(cluster, plan, timeoutMs, signal)
  }
  const abandon = (): void => housekeeping.abandon(plan.name)
  const pod = await startPod(cluster, { plan, timeoutMs, signal, onWaiting, complete, abandon })
  housekeeping.watch(pod)
  try {
    const ready = await awaitReady(pod.channel, {
      timeoutMs,
      ...(signal === undefined ? {} : { signal }),
      lastOutput: () => pod.lastOutput(),
    })
    if ((ready.checks['gvisor'] === true) !== gvisor) {
      await pod.kill()
      return undefined
    }
    verify(ready, plan)
    assertUserNamespace(ready, plan)
    return sandboxOf(plan, pod, ready, network !== undefined)
  } catch (error) {
    const why = isSilent(error, pod) ? await findFailure(at.cluster, plan) : undefined
    await pod.kill()
    if (why !== undefined) throw why
    if (pod.lastOutput().includes(WITHOUT_PEERS)) return undefined
    if (pod.lastOutput().includes(WRONG_VOLUME)) throw volumeError(plan, pod.lastOutput())
    throw error instanceof SandglassError
      ? error
      : new SandglassError('sandbox_setup_failed', messageOf(error), { cause: error })
  }
}

/** The words of harness/join.py for a directory that its volume does not have. */
const WRONG_VOLUME = 'the volume has '

function volumeError({ directories }: PodPlan, words: string): SandglassError {
  const volumes = mountedOf(directories).map((one) => {
    const [option, source] = 'image' in one ? ['volumeImages', one.image] : ['volumeClaims', one.claimName]
    return `kubernetes.${option}: ${source} (${one.subPath || '/'})`
  })
  return new SandglassError(
    'packages_unreadable',
    `${volumes.join(', ')}: ${words.trim()}; check the paths in the volume, and that other users may read them`,
  )
}

/** The words of harness/relay.py on gVisor, if the pod was not planned for it. */
const WITHOUT_PEERS = 'this kernel does not tell the uid of a peer'

/** True if a sandbox ended before it could say anything. */
function isSilent(error: unknown, pod: ManagedPod): boolean {
  return error instanceof SandglassError && error.code === 'harness_start_failed' && pod.lastOutput() === ''
}

/** @throws SandglassError naming what is not as it must be. */
function verify({ checks }: ReadyFrame, { uid, gvisor }: PodPlan): void {
  const failed = [
    // A pod has a network interface beside loopback; the report says so.
    ...failedChecks({ ...checks, interfaces: 'lo' }),
    ...(checks['uid'] === uid ? [] : [`it runs as uid ${String(checks['uid'])} and must run as uid ${uid}`]),
    ...findOpenDescriptors(checks, gvisor),
  ]
  if (failed.length === 0) return
  throw new SandglassError('sandbox_setup_failed', `the pod failed its checks: ${failed.join('; ')}`)
}

function sandboxOf(plan: PodPlan, pod: ManagedPod, ready: ReadyFrame, isIsolated: boolean): Sandbox {
  const { name, spec, directories, gvisor } = plan
  const limitsEnforced = enforcedLimits(heldLimits(plan), ready.checks)
  const destroy = (): Promise<void> => pod.kill()
  return {
    id: name,
    info: {
      engine: 'kubernetes',
      level: gvisor ? 'gvisor' : 'container',
      python: ready.python,
      network: isIsolated || ready.checks['interfaces'] === 'lo' ? 'none' : 'open',
      limitsEnforced,
      limitsMissing: missingLimits(limitsEnforced),
      limits: spec.limits,
    },
    channel: pod.channel,
    ready: withMemory(ready, directories),
    closed: pod.closed,
    // The harness counts and reports them at the end of each run.
    memoryKills: () => (limitsEnforced.includes('memory') ? 0 : null),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}

/** Counts what was sent to the pod as memory of its idle sandbox. */
function withMemory(ready: ReadyFrame, directories: PodPlan['directories']): ReadyFrame {
  const { memory_bytes: own } = ready.checks
  if (typeof own !== 'number') return ready
  return { ...ready, checks: { ...ready.checks, memory_bytes: own + sentBytes(directories) } }
}
