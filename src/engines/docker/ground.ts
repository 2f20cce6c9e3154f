import { randomInt } from 'node:crypto'
import { SandglassError } from '../../errors/index.ts'
import type { SandboxSpec } from '../../sandbox/index.ts'
import { type Bundle, packHarness } from './bundle.ts'
import type { ContainerPlan } from './container-config.ts'
import { connect, type Daemon } from './daemon.ts'
import { Gate } from './gate.ts'
import { findImage, type FoundImage } from './images.ts'
import { removeLeftovers } from './leftovers.ts'
import { allowedMounts, type MountRules, specDirectories } from './mounts.ts'
import type { DockerEngineOptions, HostResource } from './options.ts'
import { expectedNeeds, overheadOf, type RuntimeKind, type RuntimeNeeds } from './runtime-needs.ts'

/** What the engine found once, at its first use. */
export interface Ground {
  readonly daemon: Daemon
  readonly image: FoundImage
  /** What the name of the image stood for then. */
  readonly imageId: string
  /** Directories that the image declares as volumes. */
  readonly imageVolumes: readonly string[]
  readonly bundle: Bundle
  readonly resources: readonly HostResource[]
  readonly labels: Readonly<Record<string, string>>
  /** The kernel that the daemon runs on: a container that sees another one is in a virtual machine. */
  readonly kernel: string
  readonly info: DaemonInfo
  /** What the runtime is taken for; the first container corrects it. */
  readonly needs: RuntimeNeeds
  /** Containers that are started at the same time: as many as the daemon has processors. */
  readonly gate: Gate
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
  const reaped = removeLeftovers(daemon, timeOf(found['SystemTime'])).catch(() => undefined)
  const image = await findImage(daemon, options.image)
  const facts = await daemon.call(`look at the image ${image.name}`, daemon.docker.getImage(image.name).inspect())
  await reaped
  const info = infoOf(found)
  return {
    daemon,
    image,
    imageId: facts.Id,
    imageVolumes: Object.keys(facts.Config?.Volumes ?? {}),
    bundle: packHarness(),
    resources,
    labels,
    kernel: String(found['KernelVersion']),
    info,
    needs: expectedNeeds(options.runtime ?? info.defaultRuntime),
    gate: new Gate(Math.max(2, info.cpus)),
  }
}

/** What one container is to look like. */
export async function planFor(
  at: Ground,
  options: DockerEngineOptions,
  spec: SandboxSpec,
  id: string,
  kind: RuntimeKind,
): Promise<ContainerPlan> {
  return {
    id,
    image: at.imageId,
    imageVolumes: at.imageVolumes,
    python: options.python ?? 'python3',
    runtime: options.runtime,
    uid: randomInt(...uidsOf(at.info)),
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

/** What a daemon says of itself. */
async function introduced(daemon: Daemon): Promise<Record<string, unknown>> {
  // The types of the client leave the signal out here.
  type Info = (options: { abortSignal: AbortSignal }) => Promise<unknown>
  const ask: Info = (options) => (daemon.docker as unknown as { info: Info }).info(options)
  const stranger = (cause?: unknown): SandglassError =>
    new SandglassError(
      'docker_unreachable',
      `what answers at ${daemon.address} is no Docker daemon${cause instanceof Error ? `: ${cause.message}` : ''}; set ` +
        'DOCKER_HOST or the option host to where it is',
      cause === undefined ? {} : { cause },
    )
  const found = await daemon
    .call('tell about itself', (abortSignal) => ask.call(daemon.docker, { abortSignal }))
    .catch((error: unknown) => {
      throw error instanceof SandglassError && error.code === 'sandbox_setup_failed' ? stranger(error.cause) : error
    })
  if (typeof found !== 'object' || found === null || !('ServerVersion' in found)) throw stranger()
  return { ...found }
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

function timeOf(text: unknown): number {
  const time = Date.parse(String(text))
  return Number.isNaN(time) ? Date.now() : time
}

/**
 * A range in which two containers hardly ever meet: the kernel counts processes and more by uid. Where the daemon maps
 * uids itself there are no more than 65,536.
 */
function uidsOf({ securityOptions }: DaemonInfo): readonly [number, number] {
  const isMapped = securityOptions.some((option) => /name=(userns|rootless)/.test(option))
  return isMapped ? [20_000, 60_000] : [2_000_100_000, 2_100_000_000]
}
