import { SandglassError } from '../../errors/index.ts'
import { type Daemon, statusOf } from './daemon.ts'

/** What is used when nothing else is asked for. */
export const DEFAULT_IMAGE = 'python:3.12-slim'
/** What `sandglass image build` makes when no other name is given. */
export const BUILT_IMAGE = 'sandglass-python:latest'

/** An image that is there. */
export interface FoundImage {
  readonly name: string
  /** Why it is not the default one, for people; undefined when it is, or was asked for. */
  readonly reason: string | undefined
}

/**
 * The image to use: the one asked for, else the default one, else the one that `sandglass image build` made.
 * @throws SandglassError `image_missing`, or what is wrong with the daemon.
 */
export async function findImage(daemon: Daemon, asked: string | undefined): Promise<FoundImage> {
  if (asked !== undefined) {
    if (await exists(daemon, asked)) return { name: asked, reason: undefined }
    throw missing(daemon, asked)
  }
  if (await exists(daemon, DEFAULT_IMAGE)) return { name: DEFAULT_IMAGE, reason: undefined }
  if (await exists(daemon, BUILT_IMAGE)) {
    return { name: BUILT_IMAGE, reason: `the default image ${DEFAULT_IMAGE} is not there` }
  }
  throw missing(daemon, DEFAULT_IMAGE)
}

async function exists(daemon: Daemon, name: string): Promise<boolean> {
  const look = daemon.docker
    .getImage(name)
    .inspect()
    .then(
      () => true,
      (error: unknown) => {
        if (statusOf(error) === 404) return false
        throw error
      },
    )
  return daemon.call(`look for the image ${name}`, look)
}

function missing(daemon: Daemon, name: string): SandglassError {
  return new SandglassError(
    'image_missing',
    `the image ${name} is not on the Docker daemon at ${daemon.address}: docker pull ${name}, or make a small one from ` +
      'Debian packages where nothing can be pulled: sandglass image build',
  )
}
