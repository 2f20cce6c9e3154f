import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import type Docker from 'dockerode'
import { SandglassError } from '../../errors/index.ts'
import { aptMirror } from './apt-mirror.ts'
import { checkOptions } from './check-options.ts'
import { connect, type Daemon } from './daemon.ts'
import { BUILT_IMAGE, inspectImage } from './images.ts'
import { introduced } from './introduction.ts'
import type { DockerEngineOptions } from './options.ts'
import { buildRootfs, type RootfsPlan, withoutSecrets } from './rootfs-build.ts'
import { cacheDirectories, cachedRootfs, cacheKey, makeRootfs, type Rootfs } from './rootfs-cache.ts'

/** How {@link buildImage} is to build. */
export interface ImageBuildOptions extends Pick<DockerEngineOptions, 'host' | 'tls' | 'apiTimeoutMs'> {
  /** Name of the image. Default: the one that the Docker engine looks for, `sandglass-python:latest`. */
  readonly tag?: string
  /** Release of Debian (or of what else debootstrap knows). Default `bookworm`, which has Python 3.11. */
  readonly suite?: string
  /** Where packages come from: http, https or file URL. Default: what this machine's apt uses for the suite. */
  readonly mirror?: string
  /** Build anew although the cache has it, for example for the latest security updates. */
  readonly fresh?: boolean
  /** Where archives are kept. Default: /var/cache/sandglass as root, else `sandglass` below XDG_CACHE_HOME or ~/.cache. */
  readonly cacheDir?: string
  /** Told in words what is being done. */
  readonly onProgress?: (line: string) => void
  /** Ends it early; nothing is left behind. */
  readonly signal?: AbortSignal
}

/** An image that is on the daemon now. */
export interface BuiltImage {
  readonly tag: string
  readonly id: string
  readonly sizeBytes: number
  readonly suite: string
  /** Without user name and password. */
  readonly mirror: string
  /** As Debian names it: `amd64` or `arm64`. */
  readonly architecture: string
  /** For example `3.11.2`. */
  readonly python: string
  /** Whether the packages came from the cache. */
  readonly cached: boolean
  /** When the packages were fetched, ISO 8601. */
  readonly made: string
}

/** What is in the image beside Debian's essential packages. */
const PACKAGES = ['python3']
const IMPORT_TIMEOUT_MS = 15 * 60_000
/** What the history of an image begins with. */
const MESSAGE = 'sandglass image build'
/** Label of an image: digest of the archive that it was made from. */
export const ROOTFS_LABEL = 'sandglass.rootfs'

/**
 * Makes a small image with Python from Debian packages, and gives it to the Docker daemon, here or elsewhere: for machines
 * that cannot pull one. The first call takes a minute and needs root and debootstrap, the next ones take seconds.
 * @throws TypeError naming an option that is wrong, SandglassError with a code that says what is missing.
 */
export async function buildImage(options: ImageBuildOptions = {}): Promise<BuiltImage> {
  const { host, tls, apiTimeoutMs = 10_000, signal } = options
  checkOptions({ host, tls, apiTimeoutMs } as DockerEngineOptions)
  const tag = checkedTag(options.tag ?? BUILT_IMAGE)
  const suite = checkedSuite(options.suite ?? 'bookworm')
  const mirror = checkedMirror(options.mirror ?? (await aptMirror(suite)))
  const daemon = await connect({ ...options, apiTimeoutMs })
  const architecture = await architectureOf(daemon, signal)
  const { rootfs, cached } = await rootfsFor({ suite, mirror, architecture, packages: PACKAGES }, options)
  const patient = await connect({ ...options, apiTimeoutMs: IMPORT_TIMEOUT_MS })
  await giveTo(patient, rootfs, tag, suite, options)
  const image = await inspectImage(daemon, tag, signal)
  if (image === undefined) throw new SandglassError('image_missing', `somebody removed ${tag} as soon as it was made`)
  const { python, made } = rootfs
  return {
    tag,
    id: image.Id,
    sizeBytes: image.Size,
    suite,
    mirror: withoutSecrets(mirror),
    architecture,
    python,
    cached,
    made,
  }
}

async function rootfsFor(
  plan: RootfsPlan,
  { cacheDir, fresh = false, signal, onProgress = () => {} }: ImageBuildOptions,
): Promise<{ rootfs: Rootfs; cached: boolean }> {
  const key = cacheKey(plan)
  const caches = cacheDirectories(cacheDir)
  for (const cache of fresh ? [] : caches) {
    const rootfs = await cachedRootfs(join(cache, key))
    if (rootfs !== undefined) {
      onProgress(`packages of ${rootfs.made.slice(0, 10)} from ${join(cache, key)}; --fresh fetches them anew`)
      return { rootfs, cached: true }
    }
    if (existsSync(join(cache, key))) onProgress(`${join(cache, key)} is damaged and made anew`)
  }
  requireTools()
  onProgress(`making ${plan.suite} for ${plan.architecture} from ${withoutSecrets(plan.mirror)}, about a minute`)
  const make = (work: string): ReturnType<typeof buildRootfs> => buildRootfs(plan, work, { signal, onProgress })
  return { rootfs: await makeRootfs(caches[0], key, make), cached: false }
}

function requireTools(): void {
  if (process.platform !== 'linux') {
    throw new SandglassError(
      'platform_unsupported',
      'an image can be built on Linux only; elsewhere, pull python:3.12-slim',
    )
  }
  if (process.getuid?.() !== 0) {
    throw new SandglassError('root_required', 'building an image needs root, for debootstrap: run it with sudo')
  }
  const places = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
  if (!places.some((place) => existsSync(join(place, 'debootstrap')))) {
    throw new SandglassError('debootstrap_missing', 'building an image needs debootstrap: apt-get install debootstrap')
  }
}

/** Debian's name of the daemon's kind of processor, which must be this machine's: debootstrap runs what it installs. */
async function architectureOf(daemon: Daemon, signal: AbortSignal | undefined): Promise<string> {
  const info = await introduced(daemon, signal)
  const names: Readonly<Record<string, { debian: string; node: string }>> = {
    x86_64: { debian: 'amd64', node: 'x64' },
    aarch64: { debian: 'arm64', node: 'arm64' },
  }
  const name = String(info['Architecture'])
  const known = Object.hasOwn(names, name) ? names[name] : undefined
  if (known?.node === process.arch) return known.debian
  throw new SandglassError(
    'architecture_unsupported',
    `the daemon at ${daemon.address} runs on ${name}, this machine on ${process.arch}: build on a machine like the daemon's`,
  )
}

/** Imports the archive, unless the daemon has it, and names it. The image that had the name goes when it was one of ours. */
async function giveTo(
  daemon: Daemon,
  rootfs: Rootfs,
  tag: string,
  suite: string,
  { signal, onProgress = () => {} }: ImageBuildOptions,
): Promise<void> {
  const { docker } = daemon
  const there = await importedFrom(daemon, rootfs, signal)
  const before = await inspectImage(daemon, tag, signal)
  const { repo, version } = split(tag)
  if (there !== undefined) {
    await daemon.call(`name ${tag}`, docker.getImage(there.Id).tag({ repo, tag: version }), signal)
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
  const nowhere = (await inspectImage(daemon, before.Id))?.RepoTags?.length === 0
  // Without force: one that a container uses stays.
  if (nowhere) await daemon.call('remove an image', docker.getImage(before.Id).remove()).catch(() => undefined)
}

async function importArchive(
  daemon: Daemon,
  path: string,
  given: Readonly<Record<string, unknown>>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const file = createReadStream(path)
  // A daemon that waits for the rest of a request that is not given up would wait for ever.
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

/** What the daemon has of an archive already. */
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

/** Whether an image is as it was imported. One that is built upon it has its labels, too, and belongs to whoever made it. */
function isImported({ Config, RootFS, Comment }: Docker.ImageInspectInfo): boolean {
  return Config.Labels?.[ROOTFS_LABEL] !== undefined && RootFS.Layers?.length === 1 && Comment === MESSAGE
}

function split(reference: string): { repo: string; version: string } {
  const at = reference.lastIndexOf(':')
  if (at === -1 || reference.includes('/', at)) return { repo: reference, version: 'latest' }
  return { repo: reference.slice(0, at), version: reference.slice(at + 1) }
}

function checkedTag(tag: string): string {
  const { repo, version } = split(tag)
  if (/^[a-z\d][a-z\d._:/-]*$/.test(repo) && /^\w[\w.-]{0,127}$/.test(version)) return `${repo}:${version}`
  throw new SandglassError(
    'invalid_request',
    `${JSON.stringify(tag)} is no name of an image; it is like ${BUILT_IMAGE}`,
  )
}

function checkedSuite(suite: string): string {
  if (/^[a-z][a-z\d.-]*$/.test(suite)) return suite
  throw new SandglassError('invalid_request', `${JSON.stringify(suite)} is no suite of Debian; it is like bookworm`)
}

function checkedMirror(mirror: string): string {
  if (URL.canParse(mirror) && ['http:', 'https:', 'file:'].includes(new URL(mirror).protocol)) {
    return mirror.replace(/\/+$/, '')
  }
  throw new SandglassError('invalid_request', `the mirror ${JSON.stringify(mirror)} must be an http, https or file URL`)
}
