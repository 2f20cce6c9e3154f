import type Docker from 'dockerode'
import { SandglassError } from '../../errors/index.ts'
import { type Daemon, dial, statusOf } from './daemon.ts'

/** What is used when nothing else is asked for. */
export const DEFAULT_IMAGE = 'python:3.12-slim'
/** What `sandglass image build` makes when no other name is given. */
export const BUILT_IMAGE = 'sandglass-python:latest'

/** An image that is there. */
export interface FoundImage {
  readonly name: string
  /** Why it is not the default one, for people; undefined when it is, or was asked for. */
  readonly reason: string | undefined
  /** What the name stood for then. */
  readonly id: string
  /** Directories that it declares as volumes. */
  readonly volumes: readonly string[]
  /** Where it has its programs; undefined when it does not say. */
  readonly path: string | undefined
}

/**
 * The image to use: the one asked for, else the default one, else the one that `sandglass image build` made.
 * @param architecture the daemon's kind of processor, as it names it.
 * @throws SandglassError `image_missing`, `architecture_unsupported`, or what is wrong with the daemon.
 */
export async function findImage(daemon: Daemon, asked: string | undefined, architecture: string): Promise<FoundImage> {
  const name = asked ?? DEFAULT_IMAGE
  const first = await inspectImage(daemon, name)
  if (first !== undefined) return foundImage(name, undefined, first, architecture)
  const built = asked === undefined ? await inspectImage(daemon, BUILT_IMAGE) : undefined
  if (built === undefined) throw missing(daemon, name)
  return foundImage(BUILT_IMAGE, `the default image ${DEFAULT_IMAGE} is not there`, built, architecture)
}

/**
 * What the daemon says of an image; undefined when it has none of that name.
 * @throws SandglassError what is wrong with the daemon.
 */
export function inspectImage(
  daemon: Daemon,
  name: string,
  signal?: AbortSignal,
): Promise<Docker.ImageInspectInfo | undefined> {
  const look = (abortSignal: AbortSignal): Promise<Docker.ImageInspectInfo | undefined> =>
    dial<Docker.ImageInspectInfo>(daemon, {
      method: 'GET',
      path: `/images/${name}/json`,
      statusCodes: { 200: true, 404: 'no such image', 500: 'server error' },
      abortSignal,
    }).catch((error: unknown) => {
      if (statusOf(error) === 404) return undefined
      throw error
    })
  return daemon.call(`look for the image ${name}`, look, signal)
}

/** How a daemon names a kind of processor, and how images do. */
const PROCESSORS: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  aarch64: 'arm64',
  armv7l: 'arm',
  ppc64le: 'ppc64le',
  riscv64: 'riscv64',
  s390x: 's390x',
}

function foundImage(
  name: string,
  reason: string | undefined,
  { Id, Architecture, Config }: Docker.ImageInspectInfo,
  architecture: string,
): FoundImage {
  const wanted = Object.hasOwn(PROCESSORS, architecture) ? PROCESSORS[architecture] : undefined
  // Emulated, the filter of system calls would be one for another kind of processor.
  if (wanted !== undefined && Architecture && Architecture !== wanted) {
    throw new SandglassError(
      'architecture_unsupported',
      `the image ${name} is made for ${Architecture}, and the Docker daemon runs on ${wanted}: ` +
        `docker pull --platform linux/${wanted} ${name}`,
    )
  }
  const path = (Config?.Env ?? []).findLast((one) => one.startsWith('PATH='))?.slice('PATH='.length)
  return { name, reason, id: Id, volumes: Object.keys(Config?.Volumes ?? {}), path: path === '' ? undefined : path }
}

function missing(daemon: Daemon, name: string): SandglassError {
  return new SandglassError(
    'image_missing',
    `the image ${name} is not on the Docker daemon at ${daemon.address}: docker pull ${name}, or make a small one from ` +
      'Debian packages where nothing can be pulled: sandglass image build',
  )
}
