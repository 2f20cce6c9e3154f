import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errnoOf } from '../../src/errors/index.ts'
import { makeDirectory, pidNamespace, statusOf } from '../../src/support/index.ts'
import { RECIPE, type RootfsMade, type RootfsPlan } from './rootfs.ts'

/** An archive in the cache. */
export interface Rootfs {
  /** Gzipped tar. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
  readonly python: string
  /** The time at which it was made, ISO 8601. */
  readonly made: string
}

const WORK_PREFIX = 'building-'
const ABOUT = 'about.json'
const DAY_MS = 86_400_000
const UNUSED_MS = 60 * DAY_MS

/** All users may read root's archives; other users also have a cache of their own. */
export function cacheDirectories(given: string | undefined): readonly [own: string, ...others: string[]] {
  const shared = '/var/cache/sandglass'
  if (given !== undefined) return [given]
  if (process.getuid?.() === 0) return [shared]
  const base = process.env['XDG_CACHE_HOME'] ?? ''
  return [join(isAbsolute(base) ? base : join(homedir(), '.cache'), 'sandglass'), shared]
}

/** The name of an archive in the cache, made from everything that determines its content. */
export function cacheKey(plan: RootfsPlan): string {
  const { suite, architecture, mirror, packages } = plan
  const digest = createHash('sha256').update(JSON.stringify([RECIPE, suite, architecture, mirror, packages.toSorted()]))
  return `rootfs-${suite}-${architecture}-${digest.digest('hex').slice(0, 12)}`
}

/** The archive of an entry; undefined if there is none or it is damaged. */
export async function cachedRootfs(entry: string): Promise<Rootfs | undefined> {
  try {
    const about = JSON.parse(await readFile(join(entry, ABOUT), 'utf8')) as Partial<Record<keyof Rootfs, unknown>>
    const { bytes, sha256, python, made } = about
    const path = join(entry, 'rootfs.tar.gz')
    if (typeof sha256 !== 'string' || typeof python !== 'string' || typeof made !== 'string') return undefined
    const { size } = await stat(path)
    if (size !== bytes || (await digestOf(path)) !== sha256) return undefined
    // Updates the time of last use. Only root can do so for its entries.
    await utimes(entry, new Date(), new Date()).catch(() => undefined)
    return { path, bytes: size, sha256, python, made }
  } catch {
    return undefined
  }
}

/**
 * Runs `make` in a working directory and puts the archive into the cache atomically, in place of an earlier one. The
 * working directory is removed in any case, as are those of makers that were killed.
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
    // Another maker may have been faster.
    return (await cachedRootfs(join(cache, key))) ?? { path: join(cache, key, 'rootfs.tar.gz'), ...about }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function workDirectory(cache: string): Promise<string> {
  makeDirectory(cache, { own: 0o755, above: 0o755 })
  await removeAbandoned(cache)
  const work = await mkdtemp(join(cache, `${WORK_PREFIX}${ownNamespace()}-${process.pid}-`))
  await chmod(work, 0o755)
  return work
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
    // Another maker was faster; its archive is equivalent.
    if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error
  }
}

/** Removes working directories whose maker is dead. If the maker runs in another pid namespace, they go after a day. */
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

/** In milliseconds; 0 if another maker has just moved the path. */
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
