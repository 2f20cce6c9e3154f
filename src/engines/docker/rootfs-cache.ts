import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errnoOf, messageOf, SandglassError } from '../../errors/index.ts'
import { makeDirectory, pidNamespace, statusOf } from '../../support/index.ts'
import { RECIPE, type RootfsMade, type RootfsPlan } from './rootfs-build.ts'

/** An archive of a root directory that was found or made. */
export interface Rootfs {
  /** Gzipped tar. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
  readonly python: string
  /** When it was made, ISO 8601. */
  readonly made: string
}

const WORK_PREFIX = 'building-'
const ABOUT = 'about.json'
const DAY_MS = 86_400_000
const UNUSED_MS = 60 * DAY_MS

/** Root's archives are everybody's; others have their own, and may use root's. */
export function cacheDirectories(given: string | undefined): readonly [own: string, ...others: string[]] {
  const shared = '/var/cache/sandglass'
  if (given !== undefined) return [given]
  if (process.getuid?.() === 0) return [shared]
  const base = process.env['XDG_CACHE_HOME'] ?? ''
  return [join(isAbsolute(base) ? base : join(homedir(), '.cache'), 'sandglass'), shared]
}

/** The name of an archive in the cache: everything that decides what is in it. */
export function cacheKey(plan: RootfsPlan): string {
  const { suite, architecture, mirror, packages } = plan
  const digest = createHash('sha256').update(JSON.stringify([RECIPE, suite, architecture, mirror, packages.toSorted()]))
  return `rootfs-${suite}-${architecture}-${digest.digest('hex').slice(0, 12)}`
}

/** The archive of an entry; undefined when there is none, or it is not what was written. */
export async function cachedRootfs(entry: string): Promise<Rootfs | undefined> {
  try {
    const about = JSON.parse(await readFile(join(entry, ABOUT), 'utf8')) as Partial<Record<keyof Rootfs, unknown>>
    const { bytes, sha256, python, made } = about
    const path = join(entry, 'rootfs.tar.gz')
    if (typeof sha256 !== 'string' || typeof python !== 'string' || typeof made !== 'string') return undefined
    const { size } = await stat(path)
    if (size !== bytes || (await digestOf(path)) !== sha256) return undefined
    // When it was used last; root's is for reading to others.
    await utimes(entry, new Date(), new Date()).catch(() => undefined)
    return { path, bytes: size, sha256, python, made }
  } catch {
    return undefined
  }
}

/**
 * Puts what `make` leaves in a working directory at an entry of the cache, whole or not at all, in the place of what is
 * there. The working directory is removed in any case, also those of makers that were killed.
 * @throws SandglassError what `make` throws; `no_space` or `state_dir_unusable` when the cache cannot be written.
 */
export async function makeRootfs(
  cache: string,
  key: string,
  make: (work: string) => Promise<RootfsMade>,
): Promise<Rootfs> {
  const work = await workDirectory(cache)
  try {
    const { path, python } = await make(work)
    const done = join(work, 'entry')
    await mkdir(done)
    await rename(path, join(done, 'rootfs.tar.gz'))
    const { size } = await stat(join(done, 'rootfs.tar.gz'))
    const sha256 = await digestOf(join(done, 'rootfs.tar.gz'))
    const about = { bytes: size, sha256, python, made: new Date().toISOString() }
    await writeFile(join(done, ABOUT), `${JSON.stringify(about)}\n`)
    await replace(done, join(cache, key), join(work, 'before'))
    await removeUnused(cache)
    // Another maker may have been quicker.
    return (await cachedRootfs(join(cache, key))) ?? { path: join(cache, key, 'rootfs.tar.gz'), ...about }
  } catch (error) {
    throw unwritable(error, cache)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function workDirectory(cache: string): Promise<string> {
  try {
    makeDirectory(cache, { own: 0o755, above: 0o755 })
    await removeAbandoned(cache)
    const work = await mkdtemp(join(cache, `${WORK_PREFIX}${ownNamespace()}-${process.pid}-`))
    await chmod(work, 0o755)
    return work
  } catch (error) {
    throw unwritable(error, cache)
  }
}

async function replace(from: string, to: string, aside: string): Promise<void> {
  try {
    await rename(to, aside)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
  try {
    await rename(from, to)
  } catch (error) {
    // Somebody else was as quick: theirs is as good.
    if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error
  }
}

/** Working directories whose maker is dead; of one that cannot be seen from here, after a day. */
async function removeAbandoned(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    if (!name.startsWith(WORK_PREFIX)) continue
    const [namespace, pid] = name.slice(WORK_PREFIX.length).split('-')
    const isDead =
      namespace === ownNamespace() ? statusOf(Number(pid))?.lives !== true : (await ageOf(join(cache, name))) > DAY_MS
    if (isDead) await rm(join(cache, name), { recursive: true, force: true })
  }
}

async function removeUnused(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    if (!name.startsWith('rootfs-')) continue
    if ((await ageOf(join(cache, name))) > UNUSED_MS) await rm(join(cache, name), { recursive: true, force: true })
  }
}

/** In milliseconds; none for what another maker has just put elsewhere. */
async function ageOf(path: string): Promise<number> {
  try {
    return Date.now() - (await stat(path)).mtimeMs
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 0
    throw error
  }
}

function ownNamespace(): string {
  return pidNamespace() || '0'
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

function unwritable(error: unknown, cache: string): unknown {
  const errno = errnoOf(error)
  if (error instanceof SandglassError || errno === undefined) return error
  if (errno === 'ENOSPC' || errno === 'EDQUOT') {
    return new SandglassError('no_space', `no space is left below ${cache} for the packages of the image`, {
      cause: error,
    })
  }
  const remedy = 'make it writable or name another one (option cacheDir; XDG_CACHE_HOME unless you are root)'
  return new SandglassError(
    'state_dir_unusable',
    `the cache ${cache} cannot be written: ${messageOf(error)}; ${remedy}`,
    {
      cause: error,
    },
  )
}
