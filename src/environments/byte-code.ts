import { createHash, randomUUID } from 'node:crypto'
import { appendFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { existsSync, lstatSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { errnoOf } from '../errors/index.ts'
import { filesBelow, SLICE } from './content.ts'
import type { PythonTarget } from './target.ts'

/** A source file of an environment without byte code. */
export interface Source {
  /** Below the directory of packages. */
  readonly path: string
  readonly bytes: number
}

/** A file that a sandbox made for an environment. */
export interface MadeFile {
  readonly path: string
  readonly content: Uint8Array
}

/** Directories whose modules scripts rarely import. */
const SKIPPED = /(?:^|\/)(?:tests?|testing|_tests|__pycache__|idlelib|examples|\.sandglass)\//
/** The directory whose files are copied into the home directory of each run. */
export const HOME = '.sandglass/home'
/** Sources that get byte code; those of deeper packages, which scripts rarely import, are left out first. */
const MAX_SOURCES = 20_000
const MAX_HOME_BYTES = 1024 * 1024
const MAX_HOME_FILES = 20

/** The sources that have no byte code for this Python, those at the top of packages first. */
export async function sourcesWithoutByteCode(packages: string, target: PythonTarget): Promise<readonly Source[]> {
  const levels: string[][] = []
  const made = new Set<string>()
  for (const [at, { parentPath, name }] of (await filesBelow(packages)).entries()) {
    const path = join(parentPath.slice(packages.length + 1), name)
    if (name.endsWith('.pyc')) made.add(path)
    else if (name.endsWith('.py') && !SKIPPED.test(path)) (levels[depthOf(path)] ??= []).push(path)
    if (at % SLICE === 0) await setImmediate()
  }
  const sources: Source[] = []
  // A level without sources is undefined.
  for (const paths of levels) {
    for (const path of (paths ?? []).slice(0, MAX_SOURCES - sources.length).toSorted()) {
      if (made.has(byteCodePath(path, target))) continue
      sources.push({ path, bytes: lstatSync(join(packages, path), { throwIfNoEntry: false })?.size ?? 0 })
      if (sources.length % SLICE === 0) await setImmediate()
    }
  }
  return sources
}

/**
 * Puts byte code into `__pycache__` next to its source. Only byte code of these sources is written.
 * @param bytes a file that {@link COMPILE_SCRIPT} wrote.
 */
export async function addByteCode(
  packages: string,
  sources: readonly Source[],
  bytes: Uint8Array,
  target: PythonTarget,
): Promise<void> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at + 8 <= view.length;) {
    const source = sources[view.readUInt32LE(at)]
    const length = view.readUInt32LE(at + 4)
    at += 8
    if (source === undefined || at + length > view.length) return
    await writeAddedFile(packages, byteCodePath(source.path, target), view.subarray(at, at + length))
    at += length
  }
}

/**
 * Stores files for the home directory of every run: all of them or, if this process ends before, none. To be
 * called once; files that exist already stay.
 */
export async function addHomeFiles(packages: string, files: readonly MadeFile[]): Promise<void> {
  if (files.length === 0) return
  // Beside the packages, so that `verify` does not report files that a killed process leaves.
  const staged = join(dirname(packages), `home-${randomUUID()}`)
  let bytes = 0
  try {
    await mkdir(staged, { mode: 0o755 })
    for (const { path, content } of files.slice(0, MAX_HOME_FILES)) {
      bytes += content.length
      if (bytes > MAX_HOME_BYTES || path.split('/').includes('..')) break
      await noteAdded(packages, posix.join(HOME, path), content)
      await mkdir(dirname(join(staged, path)), { recursive: true, mode: 0o755 })
      await writeFile(join(staged, path), content, { mode: 0o644 })
    }
    await mkdir(join(packages, dirname(HOME)), { mode: 0o755 }).catch(ignoreCode('EEXIST'))
    await rename(staged, join(packages, HOME))
  } catch (error) {
    await rm(staged, { recursive: true, force: true })
    // The environment was removed, a file of a package is in the way, or another process was first.
    ignoreCode('ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST')(error)
  }
}

/** True if home files were made before. */
export function hasHomeFiles(packages: string): boolean {
  return existsSync(join(packages, HOME))
}

/**
 * Compiles sources inside of a sandbox without executing them. Its inputs are `paths` and `root`; it writes records
 * (number of the path, length, byte code) into files of at most 3 MiB. The byte code is not compared with its source at each
 * import: both are read-only.
 */
export const COMPILE_SCRIPT = `
import importlib.util, os, struct
from importlib._bootstrap_external import _code_to_hash_pyc

os.mkdir("out")
number, file = 0, open("out/0", "wb")
for index, path in enumerate(paths):
    try:
        with open(os.path.join(root, path), "rb") as source:
            data = source.read()
        made = _code_to_hash_pyc(compile(data, os.path.join(root, path), "exec", dont_inherit=True), importlib.util.source_hash(data), False)
    except Exception:
        continue
    if len(made) > 3 * 1024 * 1024:
        continue
    if file.tell() + len(made) > 3 * 1024 * 1024:
        file.close()
        number += 1
        file = open(f"out/{number}", "wb")
    file.write(struct.pack("<II", index, len(made)) + made)
file.close()
`

/** A script whose files in the home directory are kept. */
interface HomeScript {
  readonly module: string
  /** Globs of paths below the home directory. Each file is copied at the beginning of each run. */
  readonly collect: readonly string[]
  readonly script: string
}

/** Scripts that make files once that packages would otherwise make in the home directory of each run. */
export const HOME_SCRIPTS: readonly HomeScript[] = [
  {
    module: 'matplotlib',
    // The font list, without fontconfig's own cache, which nothing reads again.
    collect: ['.cache/matplotlib/**', '.matplotlib/**'],
    script:
      'import os\nos.environ["HOME"] = "/workspace/home"\nos.mkdir("/workspace/home")\nimport matplotlib.font_manager\n',
  },
]

/** True if everything was made that can be made. */
export function isFinished(packages: string): boolean {
  return existsSync(finishedMark(packages))
}

export async function markFinished(packages: string): Promise<void> {
  await writeFile(finishedMark(packages), '')
}

/** The files that were added to an environment, each with every SHA-256 (base64url) that it may have. */
export async function addedFiles(packages: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const added = new Map<string, Set<string>>()
  const text = await readFile(listOfAdded(packages), 'utf8').catch(() => '')
  for (const line of text.split('\n')) {
    const [, digest, quoted] = /^([\w-]{43}) (".*")$/.exec(line) ?? []
    if (digest === undefined || quoted === undefined) continue
    const path = JSON.parse(quoted) as string
    // Two processes may have made the same file.
    added.set(path, (added.get(path) ?? new Set()).add(digest))
  }
  return added
}

function listOfAdded(packages: string): string {
  return join(dirname(packages), 'added')
}

function finishedMark(packages: string): string {
  return join(dirname(packages), 'finished')
}

function byteCodePath(path: string, { abi }: PythonTarget): string {
  const tag = abi.split('-').slice(0, 2).join('-')
  return posix.join(posix.dirname(path), '__pycache__', `${posix.basename(path, '.py')}.${tag}.pyc`)
}

/**
 * Writes a file and its directories from `__pycache__` or `.sandglass` on. Nothing is written into an environment that was
 * removed meanwhile, or where a file of a package is in the way.
 */
async function writeAddedFile(packages: string, path: string, content: Uint8Array): Promise<void> {
  const parts = path.split('/')
  const own = parts.findIndex((part) => part === '__pycache__' || part === '.sandglass')
  const temporary = join(packages, `${path}.${randomUUID()}`)
  try {
    await noteAdded(packages, path, content)
    for (let end = own + 1; end < parts.length; end += 1) {
      await mkdir(join(packages, ...parts.slice(0, end)), { mode: 0o755 }).catch(ignoreCode('EEXIST'))
    }
    await writeFile(temporary, content, { mode: 0o644 })
    await rename(temporary, join(packages, path))
  } catch (error) {
    await rm(temporary, { force: true }).catch(ignoreCode('ENOTDIR'))
    ignoreCode('ENOENT', 'ENOTDIR')(error)
  }
}

/** Lists a file before it is written, on a line of its own even after an incomplete line. */
async function noteAdded(packages: string, path: string, content: Uint8Array): Promise<void> {
  const digest = createHash('sha256').update(content).digest('base64url')
  await appendFile(listOfAdded(packages), `\n${digest} ${JSON.stringify(path)}\n`)
}

function ignoreCode(...codes: readonly string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(errnoOf(error) ?? '')) throw error
  }
}

function depthOf(path: string): number {
  return path.split('/').length
}
