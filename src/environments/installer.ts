import { randomUUID } from 'node:crypto'
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { explainFailure, type Question } from './explain.ts'
import { type IndexSettings, withoutCredentials } from './index-settings.ts'
import { assertLockSize, type Lock, readLock } from './lock-file.ts'
import { NO_LIMIT_OF_AGE } from './options.ts'
import { pyodideLinks } from './pyodide-packages.ts'
import { describeTarget, interpreterInfo, type PythonTarget } from './target.ts'
import { runUv } from './uv-process.ts'

/** The task of one installation. */
export interface InstallPlan {
  readonly uv: string
  readonly cacheDir: string
  /** Bytes that the whole cache may have. */
  readonly maxBytes: number
  readonly index: IndexSettings
  readonly target: PythonTarget
  readonly requirements: readonly string[]
  readonly excludeNewer: string | undefined
  readonly pyodidePackages?: string | undefined
  readonly offline: boolean
  /** Asks the index again even for what it said a moment ago. */
  readonly isUpdate?: boolean
  readonly signal: AbortSignal
  /** Bytes that have arrived of those that the lock expects. */
  readonly onDownloaded?: (bytes: number) => void
}

const MAX_RATIO = 20
/** Small wheels may unpack to this, whatever their size. */
const MIN_BYTES = 256 * 1024 * 1024
const LINKS = 'pyodide.html'

/**
 * Resolves requirements to exact wheels. Nothing of a package is executed: only wheels are taken, and a program that prints
 * facts stands in for Python.
 * @throws SandglassError with a code of docs/errors.md that begins with `dependency_` or `index_`, or `no_space`.
 */
export async function lockRequirements(plan: InstallPlan, work: string): Promise<Lock> {
  const output = join(work, 'pylock.toml')
  await writeFile(join(work, 'requirements.in'), plan.requirements.map((one) => `${one}\n`).join(''))
  const links = plan.pyodidePackages === undefined ? undefined : pyodideLinks(plan.pyodidePackages, plan.target)
  if (links !== undefined) await writeFile(join(work, LINKS), links)
  await uv(plan, work, [
    'pip',
    'compile',
    '--format',
    'pylock.toml',
    '--no-header',
    '--no-annotate',
    ...(plan.excludeNewer === undefined || plan.excludeNewer === NO_LIMIT_OF_AGE
      ? []
      : ['--exclude-newer', plan.excludeNewer]),
    ...(links === undefined ? [] : ['--find-links', join(work, LINKS)]),
    ...(plan.isUpdate === true && !plan.offline ? ['--refresh'] : []),
    '--output-file',
    output,
    'requirements.in',
  ])
  const { size } = await stat(output).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error
    throw new SandglassError('installer_missing', `${plan.uv} is not uv: it made no lock`, { cause: error })
  })
  assertLockSize(size)
  return readLock(await readFile(output, 'utf8'))
}

/** Installs the packages of a lock into an empty directory. @throws SandglassError as {@link lockRequirements} does. */
export async function installLock(
  plan: InstallPlan,
  work: string,
  lock: Lock,
  target: string,
  heldLocks: readonly number[],
): Promise<void> {
  await writeFile(join(work, 'pylock.toml'), lock.text)
  const command = ['pip', 'sync', '--preview-features', 'pylock', '--target', target, 'pylock.toml']
  await uv(plan, work, command, lock, heldLocks)
}

/** Makes the directory in which uv works: it holds an empty configuration, and the program that stands in for Python. */
export async function makeWorkDirectory(cacheDir: string, target: PythonTarget): Promise<string> {
  const work = join(cacheDir, 'work', randomUUID())
  await mkdir(work, { recursive: true, mode: 0o700 })
  const info = interpreterInfo(target, join(work, 'python3'))
  if (info === undefined) {
    throw new SandglassError('dependency_no_wheel', `no wheels are made for ${describeTarget(target)}`)
  }
  // uv looks for one in every directory above.
  await writeFile(join(work, 'uv.toml'), '')
  await writeFile(join(work, 'python.json'), info)
  await writeFile(
    join(work, 'python3'),
    `#!/bin/sh\nexec cat '${join(work, 'python.json').replaceAll("'", `'\\''`)}'\n`,
  )
  await chmod(join(work, 'python3'), 0o755)
  return work
}

/** Bytes to which wheels may unpack: twenty times their own, and never more than the whole cache may have. */
export function maxUnpacked(lock: Lock | undefined, maxBytes: number): number {
  const isKnown = lock?.packages.every(({ bytes }) => bytes > 0) === true
  return Math.max(MIN_BYTES, isKnown ? Math.min(MAX_RATIO * lock.downloadBytes, maxBytes) : maxBytes)
}

async function uv(
  plan: InstallPlan,
  work: string,
  command: readonly string[],
  lock?: Lock,
  heldLocks: readonly number[] = [],
): Promise<void> {
  const args = [
    ...command,
    '--python',
    join(work, 'python3'),
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
  let arrived = 0
  const end = await runUv({
    ...plan,
    work,
    args,
    heldLocks,
    variables: plan.index.variables,
    maxBytes: maxUnpacked(lock, plan.maxBytes),
    onLine(line) {
      const name = /^ Downloaded (\S{1,200})$/.exec(line)?.[1]
      if (name === undefined) return
      arrived += lock?.packages.find((one) => one.name === name)?.bytes ?? 0
      plan.onDownloaded?.(arrived)
    },
  })
  if (end.code === 0) return
  plan.signal.throwIfAborted()
  throw explainFailure(end.stderr, questionOf(plan))
}

function questionOf({ requirements, target, index, excludeNewer, offline }: InstallPlan): Question {
  return { requirements, target, index: withoutCredentials(index.base), excludeNewer, offline }
}
