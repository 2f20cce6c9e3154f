import { SandglassError } from '../../errors/index.ts'
import type { SandboxSpec } from '../../sandbox/index.ts'
import { type Bundle, packHarness } from './bundle.ts'
import type { ContainerPlan } from './container-config.ts'
import { connect, type Daemon } from './daemon.ts'
import { introduced, kernelOf, timeOf } from './introduction.ts'
import { findImage, type FoundImage } from './images.ts'
import { removeLeftovers } from './leftovers.ts'
import { allowedMounts, type MountRules, specDirectories } from './mounts.ts'
import type { DockerEngineOptions, HostResource } from './options.ts'
import { expectedNeeds, overheadOf, type RuntimeKind, type RuntimeNeeds } from './runtime-needs.ts'

/** What the engine found once, at its first use. */
export interface Ground {
  readonly daemon: Daemon
  readonly image: FoundImage
  readonly bundle: Bundle
  readonly resources: readonly HostResource[]
  readonly labels: Readonly<Record<string, string>>
  /** The kernel that the daemon runs on: a container that sees another one is in a virtual machine. Empty when not told. */
  readonly kernel: string
  /** What the daemon's clock said, in seconds since 1970; undefined when it does not tell. */
  readonly since: number | undefined
  readonly info: DaemonInfo
  /** What the runtime is taken for; the first container corrects it. */
  readonly needs: RuntimeNeeds
}

/** What the daemon says of itself, as far as it is used. */
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
 * Finds the daemon and the image, and removes what dead owners left.
 * @throws SandglassError with the code of what is missing.
 */
export async function prepare(options: DockerEngineOptions, labels: Ground['labels']): Promise<Ground> {
  const daemon = await connect(options)
  const resources = await allowedMounts(rulesOf(options, daemon))
  const found = await introduced(daemon)
  if (found['OSType'] === 'windows') {
    throw new SandglassError(
      'platform_unsupported',
      `the Docker daemon at ${daemon.address} runs Windows containers; switch it to Linux containers`,
    )
  }
  // What is left over is in nobody's way: a daemon that cannot remove it now does not keep scripts from running.
  const reaped = removeLeftovers(daemon).catch(() => undefined)
  const info = infoOf(found)
  const image = await findImage(daemon, options.image, info.architecture)
  await atMost(REAPING_MS, reaped)
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
    needs: expectedNeeds(options.runtime ?? info.defaultRuntime),
  }
}

/** How long the first container waits for the removal of what is left over, which goes on behind it. */
const REAPING_MS = 3000

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([work, over])
  clearTimeout(timer)
}

/** What one container is to look like. */
export async function planFor(
  at: Ground,
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
    ...(await specDirectories(spec, rulesOf(options, at.daemon))),
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
