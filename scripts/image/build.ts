import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import type Docker from 'dockerode'
import { connect, type Daemon } from '../../src/engines/docker/daemon.ts'
import { BUILT_IMAGE, inspectImage } from '../../src/engines/docker/images.ts'
import { fetchDaemonInfo } from '../../src/engines/docker/daemon-info.ts'
import { aptMirror } from './apt-mirror.ts'
import { buildRootfs, type RootfsPlan, withoutSecrets } from './rootfs.ts'
import { cacheDirectories, cachedRootfs, cacheKey, makeRootfs, type Rootfs } from './rootfs-cache.ts'

/** Options of {@link buildImage}; all have defaults. */
export interface ImageOptions {
  /** Address of the daemon. Default: DOCKER_HOST, else the local socket. */
  readonly host?: string
  /** Default: the name that the Docker engine falls back to. */
  readonly tag?: string
  /** Release of Debian. Default `bookworm`, which has Python 3.11. */
  readonly suite?: string
  /** Default: the mirror that this machine's apt uses for the suite. */
  readonly mirror?: string
  /** Ignores the cached packages. */
  readonly fresh?: boolean
  readonly cacheDir?: string
  readonly onProgress?: (line: string) => void
  /** Stops the build; nothing is left behind. */
  readonly signal?: AbortSignal
}

/** An image that the daemon has now. */
export interface BuiltImage {
  readonly tag: string
  readonly id: string
  readonly sizeBytes: number
  readonly python: string
  /** True if the packages came from the cache. */
  readonly cached: boolean
}

const PACKAGES = ['python3']
const API_TIMEOUT_MS = 10_000
const IMPORT_TIMEOUT_MS = 15 * 60_000
/** The comment of an image that this program imported. */
const MESSAGE = 'sandglass: npm run image'
/** Label of an image: digest of the archive that it was made from. */
export const ROOTFS_LABEL = 'sandglass.rootfs'

/**
 * Makes a small image with Python from Debian packages and imports it into the Docker daemon. The first build takes a
 * minute or two and needs root and debootstrap; later builds take seconds.
 */
export async function buildImage(options: ImageOptions = {}): Promise<BuiltImage> {
  const { host, signal, tag = BUILT_IMAGE, suite = 'bookworm' } = options
  const mirror = options.mirror ?? (await aptMirror(suite))
  const address = host === undefined ? {} : { host }
  const daemon = await connect({ ...address, apiTimeoutMs: API_TIMEOUT_MS })
  const architecture = await architectureOf(daemon, signal)
  const { rootfs, cached } = await rootfsFor({ suite, mirror, architecture, packages: PACKAGES }, options)
  const patient = await connect({ ...address, apiTimeoutMs: IMPORT_TIMEOUT_MS })
  await importInto(patient, rootfs, tag, suite, options)
  const image = await inspectImage(daemon, tag, signal)
  if (image === undefined) throw new Error(`${tag} was removed during the build`)
  return { tag, id: image.Id, sizeBytes: image.Size, python: rootfs.python, cached }
}

async function rootfsFor(
  plan: RootfsPlan,
  { cacheDir, fresh = false, signal, onProgress = () => {} }: ImageOptions,
): Promise<{ rootfs: Rootfs; cached: boolean }> {
  const key = cacheKey(plan)
  const caches = cacheDirectories(cacheDir)
  for (const cache of fresh ? [] : caches) {
    const rootfs = await cachedRootfs(join(cache, key))
    if (rootfs !== undefined) {
      onProgress(`packages of ${rootfs.made.slice(0, 10)} from ${join(cache, key)}; --fresh fetches them again`)
      return { rootfs, cached: true }
    }
    if (existsSync(join(cache, key))) onProgress(`${join(cache, key)} is damaged and made again`)
  }
  requireTools()
  onProgress(`making ${plan.suite} for ${plan.architecture} from ${withoutSecrets(plan.mirror)}, about a minute`)
  const make = (work: string): ReturnType<typeof buildRootfs> => buildRootfs(plan, work, { signal, onProgress })
  return { rootfs: await makeRootfs(caches[0], key, make), cached: false }
}

function requireTools(): void {
  if (process.getuid?.() !== 0) throw new Error('the first build of the image needs root, for debootstrap')
  const places = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
  if (!places.some((place) => existsSync(join(place, 'debootstrap')))) {
    throw new Error('the first build of the image needs debootstrap: apt-get install debootstrap')
  }
}

/** Debian's name of the daemon's architecture, which must be this machine's: debootstrap runs the programs it installs. */
async function architectureOf(daemon: Daemon, signal: AbortSignal | undefined): Promise<string> {
  const info = await fetchDaemonInfo(daemon, signal)
  const names: Readonly<Record<string, { debian: string; node: string }>> = {
    x86_64: { debian: 'amd64', node: 'x64' },
    aarch64: { debian: 'arm64', node: 'arm64' },
  }
  const name = String(info['Architecture'])
  const known = Object.hasOwn(names, name) ? names[name] : undefined
  if (known?.node === process.arch) return known.debian
  throw new Error(`the daemon at ${daemon.address} runs on ${name}, this machine on ${process.arch}`)
}

/** Imports the archive unless the daemon has it, and names it. Removes the image that had the name if it was one of ours. */
async function importInto(
  daemon: Daemon,
  rootfs: Rootfs,
  tag: string,
  suite: string,
  { signal, onProgress = () => {} }: ImageOptions,
): Promise<void> {
  const { docker } = daemon
  const imported = await importedFrom(daemon, rootfs, signal)
  const before = await inspectImage(daemon, tag, signal)
  const [repo = '', version = 'latest'] = tag.split(':')
  if (imported !== undefined) {
    await daemon.call(`name ${tag}`, docker.getImage(imported.Id).tag({ repo, tag: version }), signal)
  } else {
    onProgress(`importing ${Math.round(rootfs.bytes / 1e6)} MB into the daemon at ${daemon.address}`)
    const labels = { [ROOTFS_LABEL]: rootfs.sha256, 'sandglass.suite': suite, 'sandglass.python': rootfs.python }
    const changes = [
      'CMD ["python3"]',
      ...Object.entries(labels).map(([name, value]) => `LABEL ${name}=${JSON.stringify(value)}`),
    ]
    await importArchive(daemon, rootfs.path, { repo, tag: version, changes, message: MESSAGE }, signal)
  }
  if (before === undefined || !isImported(before)) return
  const isUnnamed = (await inspectImage(daemon, before.Id))?.RepoTags?.length === 0
  // Without force, so that an image in use by a container stays.
  if (isUnnamed) await daemon.call('remove an image', docker.getImage(before.Id).remove()).catch(() => undefined)
}

async function importArchive(
  daemon: Daemon,
  path: string,
  given: Readonly<Record<string, unknown>>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const file = createReadStream(path)
  // A request that is aborted must be destroyed: the daemon waits for the rest of it without a limit.
  const answer = async (abortSignal: AbortSignal): Promise<void> => {
    const stream = await daemon.docker.importImage(file, { ...given, abortSignal })
    let text = ''
    for await (const piece of stream) text += String(piece)
    const trouble = /"error":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1]
    if (trouble !== undefined) throw Object.assign(new Error(trouble), { statusCode: 500 })
  }
  try {
    await daemon.call('import an image', answer, signal)
  } finally {
    file.destroy()
  }
}

/** The image that was imported from this archive, if the daemon has it. */
async function importedFrom(
  daemon: Daemon,
  { sha256 }: Rootfs,
  signal: AbortSignal | undefined,
): Promise<Docker.ImageInspectInfo | undefined> {
  const filters = { label: [`${ROOTFS_LABEL}=${sha256}`] }
  const list = (abortSignal: AbortSignal): Promise<Docker.ImageInfo[]> =>
    daemon.docker.listImages({ filters, abortSignal })
  for (const { Id } of await daemon.call('list images', list, signal)) {
    const image = await inspectImage(daemon, Id, signal)
    if (image !== undefined && isImported(image)) return image
  }
  return undefined
}

/** True if an image is unchanged since its import. An image that a user built on it inherits the labels. */
function isImported({ Config, RootFS, Comment }: Docker.ImageInspectInfo): boolean {
  return Config.Labels?.[ROOTFS_LABEL] !== undefined && RootFS.Layers?.length === 1 && Comment === MESSAGE
}
