import { createHash } from 'node:crypto'
import { chmodSync, createReadStream, type Dirent, lstatSync, opendirSync, readdirSync } from 'node:fs'
import { opendir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { SandglassError } from '../errors/index.ts'

/** The recorded part of the content of an environment. */
export interface Content {
  readonly modules: readonly string[]
  readonly bytes: number
  readonly manifest: string
}

/** A file of an environment that differs from the `RECORD` of its wheel. */
export interface Difference {
  /** Below the directory of packages. */
  readonly path: string
  readonly problem: 'changed' | 'missing' | 'added'
}

/** Paths in a `RECORD` whose files are removed after the installation. */
const REMOVED = /^(?:\.\.?\/|bin\/|\/)/
const PARALLEL = 32
/** Files and directories of one environment: several times those of the largest known. */
const MAX_ENTRIES = 200_000
/** Bytes of one `RECORD`, the list of files of a wheel. */
const MAX_RECORD_BYTES = 16 * 1024 * 1024
/** Modules at the top of an environment. */
const MAX_MODULES = 10_000
/** A directory of at most this size has few entries: some file systems count about 20 bytes per entry, one counts 1. */
const SMALL_DIRECTORY_BYTES = 16 * 1024

/** Entries that are not modules: programs and locks of the installer, and the directory that Sandglass adds later. */
const NOT_IMPORTED: readonly string[] = ['bin', '.lock', '.sandglass']
/** Files that are handled before the event loop gets a turn: about 2 ms of work. */
export const SLICE = 512

/** Removes files that no script imports (programs, locks, links) from a new environment, and makes the rest readable for all users. */
export async function tidyContent(packages: string): Promise<Content> {
  let bytes = 0
  chmodSync(packages, 0o755)
  for (const path of NOT_IMPORTED.map((name) => join(packages, name))) {
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) await rm(path, { recursive: true, force: true })
  }
  const reading = Promise.all([modulesIn(packages), manifestOf(packages)]) // concurrently with the loop below
  reading.catch(() => {}) // rethrown where `reading` is awaited
  for (const [at, entry] of (await filesBelow(packages)).entries()) {
    const path = `${entry.parentPath}/${entry.name}`
    if (entry.isFile()) {
      const found = lstatSync(path)
      bytes += found.size
      if ((found.mode & 0o444) !== 0o444) chmodSync(path, found.mode | 0o444)
    } else await rm(path)
    if (at % SLICE === 0) await setImmediate()
  }
  const [modules, manifest] = await reading
  return { modules, bytes, manifest }
}

/**
 * Compares every file with the `RECORD` of its wheel.
 * @param manifest the manifest that was recorded when the environment was made.
 * @param added the allowed SHA-256 (base64url) of files that were added later, by path: byte code and home files.
 */
export async function findDifferences(
  packages: string,
  manifest: string,
  added: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<readonly Difference[]> {
  const differences: Difference[] = []
  const expected = await readRecords(packages)
  if ((await manifestOf(packages)) !== manifest) differences.push({ path: '*.dist-info/RECORD', problem: 'changed' })
  const found = new Set<string>()
  await forEachFile(packages, async (path) => {
    const name = relative(packages, path).split(sep).join('/')
    found.add(name)
    const hash = expected.get(name)
    if (hash === undefined) {
      const made = added.get(name)
      if (made === undefined) differences.push({ path: name, problem: 'added' })
      else if (!made.has(await digestOfFile(path))) differences.push({ path: name, problem: 'changed' })
    } else if (hash !== '' && hash !== (await digestOfFile(path))) {
      differences.push({ path: name, problem: 'changed' })
    }
  })
  for (const name of expected.keys()) if (!found.has(name)) differences.push({ path: name, problem: 'missing' })
  return differences.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

/** Names that `import` finds at the top of a directory. */
async function modulesIn(packages: string): Promise<string[]> {
  const names = new Set<string>()
  for await (const entry of await opendir(packages, { bufferSize: SLICE })) {
    const name = moduleOf(entry)
    if (name !== undefined) names.add(name)
    if (names.size === MAX_MODULES) break
  }
  return [...names].toSorted()
}

function moduleOf(entry: Dirent): string | undefined {
  if (!entry.isDirectory()) return /^([A-Za-z_]\w*)(?:\.[\w-]+)?\.(?:py|so|pyd)$/.exec(entry.name)?.[1]
  return /^[A-Za-z_]\w*$/.test(entry.name) && entry.name !== '__pycache__' ? entry.name : undefined
}

/** Every file in the `RECORD` files of an environment, with its SHA-256 in base64url; the hash is empty where `RECORD` has none. */
async function readRecords(packages: string): Promise<ReadonlyMap<string, string>> {
  const listed = new Map<string, string>()
  for (const path of await recordsIn(packages)) {
    const text = await readFile(path, 'utf8')
    for (const line of text.split(/\r?\n/)) {
      const [, quoted, plain, hash = ''] = /^(?:"((?:[^"]|"")*)"|([^",]*)),(?:sha256=)?([\w-]*)/.exec(line) ?? []
      const name = quoted?.replaceAll('""', '"') ?? plain ?? ''
      if (name !== '' && !REMOVED.test(name)) listed.set(name, hash)
      if (listed.size > 2 * MAX_ENTRIES)
        throw new SandglassError(
          'dependency_invalid',
          `the RECORD files of the packages list more than ${2 * MAX_ENTRIES} files: install fewer packages`,
        )
    }
  }
  return listed
}

async function manifestOf(packages: string): Promise<string> {
  const hash = createHash('sha256')
  for (const path of await recordsIn(packages)) {
    hash.update(await readFile(path))
    hash.update('\0')
  }
  return hash.digest('hex')
}

/** The paths of the `RECORD` files, sorted, without implausibly large ones. */
async function recordsIn(packages: string): Promise<string[]> {
  const found: string[] = []
  for (const name of (await readdir(packages)).filter((one) => one.endsWith('.dist-info')).toSorted()) {
    const path = join(packages, name, 'RECORD')
    const { size } = await stat(path).catch(() => ({ size: Infinity }))
    if (size <= MAX_RECORD_BYTES) found.push(path)
  }
  return found
}

async function digestOfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path)) hash.update(piece as Uint8Array)
  return hash.digest('base64url')
}

/**
 * Everything below a directory except directories. Entries are counted while they are listed: a wheel can hold millions of empty files.
 * @throws SandglassError `dependency_invalid` for more than `max` entries.
 */
export async function filesBelow(root: string, max: number = MAX_ENTRIES): Promise<readonly Dirent[]> {
  const files: Dirent[] = []
  const directories = [root]
  let entries = 0
  for (const path of directories) {
    for (const entry of entriesOf(path)) {
      entries += 1
      if (entries > max)
        throw new SandglassError(
          'dependency_invalid',
          `the packages have more than ${max} files: install fewer packages`,
        )
      if (entry.isDirectory()) directories.push(`${path}/${entry.name}`) // `join` would take half of the time
      else files.push(entry)
      if (entries % SLICE === 0) await setImmediate()
    }
  }
  return files
}

/**
 * The entries of a directory. They are read at once if the directory is small, which takes half of the time, otherwise one
 * by one. Without a reported size, there may be any number.
 */
function* entriesOf(path: string): Generator<Dirent, void, void> {
  const { size } = lstatSync(path)
  if (size > 0 && size <= SMALL_DIRECTORY_BYTES) return yield* readdirSync(path, { withFileTypes: true })
  const directory = opendirSync(path, { bufferSize: SLICE })
  try {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) yield entry
  } finally {
    directory.closeSync()
  }
}

/** Calls a function for every file, `PARALLEL` at a time. */
async function forEachFile(root: string, visit: (path: string) => Promise<void>): Promise<void> {
  const files = await filesBelow(root)
  for (let at = 0; at < files.length; at += PARALLEL) {
    await Promise.all(files.slice(at, at + PARALLEL).map((file) => visit(join(file.parentPath, file.name))))
  }
}
