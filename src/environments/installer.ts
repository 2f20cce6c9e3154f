import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { explainFailure, type UvRequest } from './explain.ts'
import { type IndexSettings, withoutCredentials } from './index-settings.ts'
import { assertLockSize, digestOf, type Lock, readLock } from './lock-file.ts'
import { NO_LIMIT_OF_AGE } from './options.ts'
import { pyodideLinks } from './pyodide-packages.ts'
import { describeTarget, interpreterInfo, type PythonTarget } from './target.ts'
import { startUv, type UvCall, type UvEnd } from './uv-process.ts'

/** The task of one installation. */
export interface InstallPlan {
  readonly uv: string
  readonly cacheDir: string
  /** The limit of the cache. */
  readonly maxBytes: number
  readonly index: IndexSettings
  readonly target: PythonTarget
  readonly requirements: readonly string[]
  readonly excludeNewer: string | undefined
  readonly pyodidePackages?: string | undefined
  readonly offline: boolean
  /** Asks the index again instead of using its cached answers. */
  readonly isUpdate?: boolean
  readonly signal: AbortSignal
  /** Descriptors of locks that uv inherits, so that they are held until uv has ended, even if this process is killed. */
  readonly heldLocks: readonly number[]
}

/** The working directory of uv, and its stand-in for Python. */
export interface WorkDirectory {
  readonly path: string
  readonly python: string
}

/** An installation that waits for its lock. */
export interface Installation extends AsyncDisposable {
  /**
   * Installs the packages of a lock; to be called once.
   * @param onDownloaded is called with the downloaded bytes: the bytes of complete wheels, or
   *   an estimate from the unpacked bytes, whichever is more.
   * @throws SandglassError as {@link lockRequirements} does.
   */
  install(lock: Lock, onDownloaded: (bytes: number) => void): Promise<void>
}

/** Wheels unpack to about this many times their size. */
export const EXPECTED_RATIO = 4
const MAX_RATIO = 20
/** Wheels may always unpack to this, however small they are. */
const MIN_BYTES = 256 * 1024 * 1024
const LINKS = 'pyodide.html'

/**
 * Resolves requirements to exact wheels. No code of a package is executed: only wheels are used, and a program that prints
 * facts stands in for Python.
 * @throws SandglassError with a code of docs/errors.md that begins with `dependency_` or `index_`, or `no_space`.
 */
export async function lockRequirements(plan: InstallPlan, work: WorkDirectory): Promise<Lock> {
  const output = join(work.path, 'pylock.toml')
  // Synchronous, so that uv is already running when the caller starts other work.
  writeFileSync(join(work.path, 'requirements.in'), plan.requirements.map((one) => `${one}\n`).join(''))
  const links = plan.pyodidePackages === undefined ? undefined : pyodideLinks(plan.pyodidePackages, plan.target)
  if (links !== undefined) writeFileSync(join(work.path, LINKS), links)
  const command = [
    'pip',
    'compile',
    '--format',
    'pylock.toml',
    '--no-header',
    '--no-annotate',
    ...(plan.excludeNewer === undefined || plan.excludeNewer === NO_LIMIT_OF_AGE
      ? []
      : ['--exclude-newer', plan.excludeNewer]),
    ...(links === undefined ? [] : ['--find-links', join(work.path, LINKS)]),
    ...(plan.isUpdate === true && !plan.offline ? ['--refresh'] : []),
    '--output-file',
    output,
    'requirements.in',
  ]
  await using uv = startUv(callOf(plan, work, command))
  assertSucceeded(plan, await uv.run(maxUnpacked(undefined, plan.maxBytes)))
  const { size } = await stat(output).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error
    throw new SandglassError(
      'installer_missing',
      `${plan.uv} is not uv: it wrote no lock file; name uv with environments.uv`,
      { cause: error },
    )
  })
  assertLockSize(size)
  return await readLock(await readFile(output, 'utf8'))
}

/** Starts the installation into an empty directory, which may be created later. */
export function startInstallation(plan: InstallPlan, work: WorkDirectory, target: string): Installation {
  let onDownloaded: ((name: string) => void) | undefined
  let onWritten: ((bytes: number) => void) | undefined
  const command = ['pip', 'sync', '--preview-features', 'pylock', '--target', target, 'pylock.toml']
  const uv = startUv({
    ...callOf(plan, work, command),
    onLine(line) {
      const name = /^ Downloaded (\S{1,200})$/.exec(line)?.[1]
      if (name !== undefined) onDownloaded?.(name)
    },
    onWritten: (bytes) => onWritten?.(bytes),
  })
  return {
    async install(lock, report) {
      let complete = 0
      let reported = 0
      const reportMore = (bytes: number): void => {
        if (bytes > reported) report((reported = bytes))
      }
      onDownloaded = (name) => {
        complete += lock.packages.find((one) => one.name === name)?.bytes ?? 0
        reportMore(complete)
      }
      onWritten = (bytes) => reportMore(Math.min(lock.downloadBytes, Math.floor(bytes / EXPECTED_RATIO)))
      await writeFile(join(work.path, 'pylock.toml'), lock.text)
      assertSucceeded(plan, await uv.run(maxUnpacked(lock, plan.maxBytes)))
    },
    [Symbol.asyncDispose]: () => uv[Symbol.asyncDispose](),
  }
}

/** Makes the working directory of uv. @throws SandglassError `dependency_no_wheel` for a Python without any wheels. */
export async function makeWorkDirectory(cacheDir: string, target: PythonTarget): Promise<WorkDirectory> {
  const path = join(cacheDir, 'work', randomUUID())
  await mkdir(path, { recursive: true, mode: 0o700 })
  // An empty configuration, because uv would search every parent directory for one.
  await writeFile(join(path, 'uv.toml'), '')
  return { path, python: await makeStandIn(cacheDir, path, target) }
}

/**
 * Makes the program that stands in for the Python of a target. It stays in the cache, where only Sandglass writes: uv caches
 * the output of an unchanged program, and starts it only once.
 * @throws SandglassError `dependency_no_wheel` for a Python without any wheels.
 */
async function makeStandIn(cacheDir: string, work: string, target: PythonTarget): Promise<string> {
  const path = join(cacheDir, 'bin', `python-${digestOf(target, 16)}`)
  const info = interpreterInfo(target, path)
  if (info === undefined) {
    throw new SandglassError(
      'dependency_no_wheel',
      `no wheels exist for ${describeTarget(target)}; choose another Python (docs/engines.md)`,
    )
  }
  const program = `#!/bin/sh\nexec cat <<'END'\n${info}\nEND\n`
  if ((await readFile(path, 'utf8').catch(() => undefined)) === program) return path
  const temporary = join(work, 'python')
  await writeFile(temporary, program)
  await chmod(temporary, 0o755)
  await rename(temporary, path)
  return path
}

/** The bytes to which wheels may unpack: twenty times their size, and at most the limit of the cache. */
export function maxUnpacked(lock: Lock | undefined, maxBytes: number): number {
  const isKnown = lock?.packages.every(({ bytes }) => bytes > 0) === true
  return Math.max(MIN_BYTES, isKnown ? Math.min(MAX_RATIO * lock.downloadBytes, maxBytes) : maxBytes)
}

function callOf(plan: InstallPlan, work: WorkDirectory, command: readonly string[]): UvCall {
  const args = [
    ...command,
    '--python',
    work.python,
    '--only-binary',
    ':all:',
    '--no-python-downloads',
    '--no-sources',
    '--cache-dir',
    join(plan.cacheDir, 'uv'),
    '--color',
    'never',
    ...(plan.offline ? ['--offline'] : []),
    ...plan.index.args,
  ]
  return { ...plan, work: work.path, args, variables: plan.index.variables }
}

function assertSucceeded(plan: InstallPlan, { code, stderr }: UvEnd): void {
  if (code === 0) return
  plan.signal.throwIfAborted()
  throw explainFailure(stderr, uvRequestOf(plan))
}

function uvRequestOf({ requirements, target, index, excludeNewer, offline }: InstallPlan): UvRequest {
  return { requirements, target, index: withoutCredentials(index.base), excludeNewer, offline }
}
