import { SandglassError } from '../../errors/index.ts'
import { type SandboxSpec, packHarness, type PackedHarness } from '../../sandbox/index.ts'
import type { ContainerPlan } from './container-config.ts'
import { connect, type Daemon } from './daemon.ts'
import { fetchDaemonInfo, kernelOf, timeOf } from './daemon-info.ts'
import { findImage, type FoundImage } from './images.ts'
import { removeOrphans } from './containers.ts'
import { checkMounts, type MountRules, checkSpecDirectories } from './mounts.ts'
import type { DockerEngineOptions, HostResource } from './options.ts'
import { guessNeeds, overheadOf, type RuntimeKind, type RuntimeNeeds } from './runtime-needs.ts'

/** The daemon, image and settings that the engine uses, found at its first use. */
export interface EngineEnvironment {
  readonly daemon: Daemon
  readonly image: FoundImage
  readonly bundle: PackedHarness
  readonly resources: readonly HostResource[]
  readonly labels: Readonly<Record<string, string>>
  /** The kernel that the daemon runs on: a container that sees another one is in a virtual machine. Empty when not reported. */
  readonly kernel: string
  /** The time of the daemon's clock in seconds since 1970; undefined when it reports none. */
  readonly since: number | undefined
  readonly info: DaemonInfo
  /** The assumed needs of the runtime; the first container corrects them. */
  readonly needs: RuntimeNeeds
}

/** The parts of the daemon's description of itself that the engine uses. */
export interface DaemonInfo {
  readonly version: string
  readonly defaultRuntime: string
  /** Names of the runtimes that it knows, in order. */
  readonly runtimes: readonly string[]
  readonly cgroupVersion: string
  readonly architecture: string
  readonly securityOptions: readonly string[]
  readonly cpus: number
}

/**
 * Finds the daemon and the image, and removes the containers of dead owners.
 * @throws SandglassError with the code of the missing part.
 */
export async function prepare(
  options: DockerEngineOptions,
  labels: EngineEnvironment['labels'],
): Promise<EngineEnvironment> {
  const daemon = await connect(options)
  const resources = await checkMounts(rulesOf(options, daemon))
  const found = await fetchDaemonInfo(daemon)
  if (found['OSType'] === 'windows') {
    throw new SandglassError(
      'platform_unsupported',
      `the Docker daemon at ${daemon.address} runs Windows containers; switch it to Linux containers`,
    )
  }
  // Orphans block nothing: a daemon that cannot remove them now can still run scripts.
  const removing = removeOrphans(daemon).catch(() => undefined)
  const info = infoOf(found)
  const image = await findImage(daemon, options.image, info.architecture)
  await waitAtMost(REMOVAL_MS, removing)
  const time = timeOf(found)
  return {
    daemon,
    image,
    bundle: packHarness(),
    resources,
    labels,
    kernel: kernelOf(found),
    since: Number.isNaN(time) ? undefined : Math.floor(time / 1000),
    info,
    needs: guessNeeds(options.runtime ?? info.defaultRuntime),
  }
}

/** The time that the first container waits for the removal of orphans, which continues afterwards. */
const REMOVAL_MS = 3000

async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([work, over])
  clearTimeout(timer)
}

/** Plans one container. */
export async function makePlan(
  at: EngineEnvironment,
  options: DockerEngineOptions,
  spec: SandboxSpec,
  { id, uid, kind }: { readonly id: string; readonly uid: number; readonly kind: RuntimeKind },
): Promise<ContainerPlan> {
  return {
    id,
    image: at.image.id,
    imageVolumes: at.image.volumes,
    path: at.image.path,
    python: options.python ?? 'python3',
    runtime: options.runtime,
    uid,
    limits: spec.limits,
    cpus: Math.min(spec.limits.cpus, at.info.cpus),
    preload: spec.preload ?? [],
    checker: spec.checker === true,
    activities: spec.activities === true,
    ...(await checkSpecDirectories(spec, rulesOf(options, at.daemon))),
    resources: at.resources,
    labels: at.labels,
    program: at.bundle.program,
    sealed: kind === 'gvisor',
    overhead: overheadOf(kind, spec.limits),
  }
}

function rulesOf(
  { resources, allowHostPaths, hostPathMap }: DockerEngineOptions,
  { remote, address }: Daemon,
): MountRules {
  return {
    remote,
    address,
    ...(resources === undefined ? {} : { resources }),
    ...(allowHostPaths === undefined ? {} : { allowHostPaths }),
    ...(hostPathMap === undefined ? {} : { hostPathMap }),
  }
}

function infoOf(found: Readonly<Record<string, unknown>>): DaemonInfo {
  return {
    version: String(found['ServerVersion']),
    defaultRuntime: String(found['DefaultRuntime']),
    runtimes: Object.keys(found['Runtimes'] ?? {}).toSorted(),
    cgroupVersion: typeof found['CgroupVersion'] === 'string' ? found['CgroupVersion'] : '1',
    architecture: String(found['Architecture']),
    securityOptions: Array.isArray(found['SecurityOptions']) ? found['SecurityOptions'].map(String) : [],
    cpus: Number(found['NCPU']) || 1,
  }
}
