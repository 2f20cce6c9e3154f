import type Docker from 'dockerode'
import { SandglassError } from '../../errors/index.ts'
import { type Daemon, dial, statusOf } from './daemon.ts'

/** The image to use if no option names one. */
export const DEFAULT_IMAGE = 'python:3.12-slim'
/** The image that is used if the daemon does not have the default one. */
export const BUILT_IMAGE = 'sandglass-python:latest'

/** An image of the daemon. */
export interface FoundImage {
  readonly name: string
  /** The reason why it is used in place of the default image; undefined if it is the default, or was named. */
  readonly reason: string | undefined
  /** The id that the name had when it was resolved. */
  readonly id: string
  /** Directories that it declares as volumes. */
  readonly volumes: readonly string[]
  /** Its PATH; undefined when it has none. */
  readonly path: string | undefined
}

/**
 * Finds the image to use: the named one, else the default one, else {@link BUILT_IMAGE}.
 * @param architecture the daemon's CPU architecture, under the daemon's name for it.
 * @throws SandglassError `image_missing`, `architecture_unsupported`, or the problem of the daemon.
 */
export async function findImage(daemon: Daemon, asked: string | undefined, architecture: string): Promise<FoundImage> {
  const name = asked ?? DEFAULT_IMAGE
  const first = await inspectImage(daemon, name)
  if (first !== undefined) return describeImage(name, undefined, first, architecture)
  const built = asked === undefined ? await inspectImage(daemon, BUILT_IMAGE) : undefined
  if (built === undefined) throw missingImageError(daemon, name)
  return describeImage(BUILT_IMAGE, `the daemon does not have the default image ${DEFAULT_IMAGE}`, built, architecture)
}

/**
 * Fetches the daemon's description of an image; undefined when it has none of that name.
 * @throws SandglassError with the problem of the daemon.
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

/** The names of CPU architectures: those of daemons, and those of images. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  aarch64: 'arm64',
  armv7l: 'arm',
  ppc64le: 'ppc64le',
  riscv64: 'riscv64',
  s390x: 's390x',
}

function describeImage(
  name: string,
  reason: string | undefined,
  { Id, Architecture, Config }: Docker.ImageInspectInfo,
  architecture: string,
): FoundImage {
  const wanted = Object.hasOwn(ARCHITECTURES, architecture) ? ARCHITECTURES[architecture] : undefined
  // Under emulation the system call filter would be for the wrong architecture.
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

function missingImageError(daemon: Daemon, name: string): SandglassError {
  return new SandglassError(
    'image_missing',
    `the image ${name} is not on the Docker daemon at ${daemon.address}: docker pull ${name}, or build one with ` +
      'python3: docs/docker.md shows a Dockerfile of two lines',
  )
}
