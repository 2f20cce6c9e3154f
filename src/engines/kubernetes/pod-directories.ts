import { stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { SandglassError } from '../../errors/index.ts'
import { INSIDE, type SandboxSpec } from '../../sandbox/index.ts'
import { type Listing, listDirectory } from './directory.ts'
import type { KubernetesEngineOptions } from './options.ts'

/** A directory that a pod has read-only, where scripts import from. */
export type PodDirectory = SentDirectory | MountedDirectory

/** A directory of a volume that the user named. */
export type MountedDirectory = ClaimedDirectory | ImageDirectory

interface Place {
  /** The name of its volume. */
  readonly name: 'packages' | 'tools'
  /** Its path in the sandbox. */
  readonly path: string
}

/** A directory of this host that is sent to the pod, which has it in memory. */
export interface SentDirectory extends Place {
  readonly listing: Listing
}

/** A directory of a PersistentVolumeClaim. */
export interface ClaimedDirectory extends Place {
  readonly claimName: string
  /** Empty for all of it. */
  readonly subPath: string
}

/** A directory of an image, which the runtime of the node mounts. */
export interface ImageDirectory extends Place {
  readonly image: string
  /** Empty for all of it. */
  readonly subPath: string
}

/** The options with the volumes of the user: names of claims and of images, by directories of this host. */
export type Volumes = Pick<KubernetesEngineOptions, 'volumeClaims' | 'volumeImages'>

/**
 * Finds the directories of a spec: in a volume of the user, or on this host.
 * @throws SandglassError `packages_unreadable`.
 */
export async function findDirectories(
  { packages, toolsDir }: SandboxSpec,
  volumes: Volumes = {},
): Promise<readonly PodDirectory[]> {
  const wanted = [
    { option: 'packages', directory: packages, name: 'packages', path: INSIDE.packages },
    { option: 'toolsDir', directory: toolsDir, name: 'tools', path: INSIDE.tools },
  ] as const
  const found = wanted.map(async ({ option, directory, name, path }) => {
    if (directory === undefined) return []
    const volume = volumeWith(directory, volumes)
    if (volume === undefined) return [{ name, path, listing: await listDirectory(option, directory) }]
    await assertNoFile(option, directory)
    return [{ name, path, ...volume }]
  })
  return (await Promise.all(found)).flat()
}

/** True for a directory that is sent. */
export function isSent(directory: PodDirectory): directory is SentDirectory {
  return 'listing' in directory
}

/** The directories that are mounted from volumes of the user. */
export function mountedOf(directories: readonly PodDirectory[]): readonly MountedDirectory[] {
  return directories.filter((one): one is MountedDirectory => !isSent(one))
}

/** The images from which directories are mounted. */
export function imagesOf(directories: readonly PodDirectory[]): readonly string[] {
  return mountedOf(directories).flatMap((one) => ('image' in one ? [one.image] : []))
}

/** The memory in a pod of the directories that are sent to it. */
export function sentBytes(directories: readonly PodDirectory[]): number {
  return directories.filter(isSent).reduce((sum, { listing }) => sum + listing.memoryBytes, 0)
}

/** The volume that has a directory of this host: the one of the longest prefix. */
export function volumeWith(
  directory: string,
  { volumeClaims = {}, volumeImages = {} }: Volumes,
): Omit<ClaimedDirectory, keyof Place> | Omit<ImageDirectory, keyof Place> | undefined {
  const volumes = [
    ...Object.entries(volumeClaims).map(([path, claimName]) => ({ root: resolve(path), source: { claimName } })),
    ...Object.entries(volumeImages).map(([path, image]) => ({ root: resolve(path), source: { image } })),
  ]
  const [best] = volumes
    .filter(({ root }) => directory === root || directory.startsWith(root.endsWith(sep) ? root : root + sep))
    .toSorted((a, b) => b.root.length - a.root.length)
  if (best === undefined) return undefined
  const subPath = directory
    .slice(best.root.length)
    .split(sep)
    .filter((part) => part !== '')
  return { ...best.source, subPath: subPath.join('/') }
}

/** The volume need not be mounted on this host. Where it is, a wrong path is told before a pod starts. */
async function assertNoFile(option: string, directory: string): Promise<void> {
  const found = await stat(directory).catch(() => undefined)
  if (found?.isDirectory() === false)
    throw new SandglassError('packages_unreadable', `${option}: ${directory} is not a directory`)
}
