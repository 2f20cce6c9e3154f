import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { messageOf, SandglassError, shortageError } from '../errors/index.ts'
import { programsNamed } from '../support/index.ts'
import { explainFailure, type Question } from './explain.ts'
import { type IndexSettings, uvVariables, withoutCredentials } from './index-settings.ts'
import { type Lock, readLock } from './lock-file.ts'
import { describeTarget, interpreterInfo, type PythonTarget } from './target.ts'

/** The task of one installation. */
export interface InstallPlan {
  readonly uv: string
  /** The directory of the whole cache, the only one that uv can write. */
  readonly cacheDir: string
  readonly index: IndexSettings
  readonly target: PythonTarget
  readonly requirements: readonly string[]
  readonly excludeNewer: string | undefined
  readonly offline: boolean
  readonly signal: AbortSignal
  /** Bytes that have arrived of those that the lock expects. */
  readonly onDownloaded?: (bytes: number) => void
}

/** Bytes of one unpacked file: twenty times its wheel, and at least this. */
const MIN_FILE_BYTES = 512 * 1024 * 1024
const MAX_RATIO = 20
const MAX_OUTPUT = 256 * 1024

/**
 * Resolves requirements to exact wheels. Nothing of a package is executed: only wheels are taken, and a program that prints
 * facts stands in for Python.
 * @throws SandglassError with a code of docs/errors.md that begins with `dependency_` or `index_`, or `no_space`.
 */
export async function lockRequirements(plan: InstallPlan, work: string): Promise<Lock> {
  const output = join(work, 'pylock.toml')
  await writeFile(join(work, 'requirements.in'), plan.requirements.map((one) => `${one}\n`).join(''))
  await runUv(plan, work, [], MIN_FILE_BYTES, [
    'pip',
    'compile',
    '--format',
    'pylock.toml',
    '--no-header',
    '--no-annotate',
    ...(plan.excludeNewer === undefined ? [] : ['--exclude-newer', plan.excludeNewer]),
    '--output-file',
    output,
    'requirements.in',
  ])
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
  const largest = Math.max(0, ...lock.packages.map(({ bytes }) => bytes))
  const arguments_ = ['pip', 'sync', '--preview-features', 'pylock', '--target', target, 'pylock.toml']
  await runUv(plan, work, heldLocks, Math.max(MIN_FILE_BYTES, MAX_RATIO * largest), arguments_, lock)
  await clean(target)
}

/** Removes what no script imports: programs, locks and links. */
async function clean(target: string): Promise<void> {
  await Promise.all(['bin', '.lock'].map((name) => rm(join(target, name), { recursive: true, force: true })))
  const entries = await readdir(target, { recursive: true, withFileTypes: true })
  await Promise.all(
    entries
      .filter((entry) => !entry.isDirectory() && !entry.isFile())
      .map((entry) => rm(join(entry.parentPath, entry.name))),
  )
}

/** Makes the directory in which uv works: it holds no configuration, and the program that stands in for Python. */
export async function makeWorkDirectory(cacheDir: string, target: PythonTarget): Promise<string> {
  const work = join(cacheDir, 'work', randomUUID())
  await mkdir(work, { recursive: true, mode: 0o700 })
  const info = interpreterInfo(target, join(work, 'python3'))
  if (info === undefined) {
    throw new SandglassError('dependency_no_wheel', `no wheels are made for ${describeTarget(target)}`)
  }
  await writeFile(join(work, 'python.json'), info)
  await writeFile(
    join(work, 'python3'),
    `#!/bin/sh\nexec cat '${join(work, 'python.json').replaceAll("'", `'\\''`)}'\n`,
  )
  await chmod(join(work, 'python3'), 0o755)
  return work
}

async function runUv(
  plan: InstallPlan,
  work: string,
  heldLocks: readonly number[],
  maxFileBytes: number,
  command: readonly string[],
  lock?: Lock,
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
  // Everybody can read what it writes, whatever the umask; no file grows beyond the limit, in blocks of 512 bytes.
  const limited = `umask 022; ulimit -f ${Math.ceil(maxFileBytes / 512)}; exec "$@"`
  const program = ['/bin/sh', '-c', limited, 'sh', plan.uv, ...args]
  const boxed = boxOf(plan.cacheDir, work)
  let end = await runProgram(plan, work, heldLocks, boxed === undefined ? program : [...boxed, ...program], lock)
  // The box is an addition: nothing of a package is executed outside of it either.
  if (boxed !== undefined && end.code !== 0 && /^bwrap: /m.test(end.stderr)) {
    end = await runProgram(plan, work, heldLocks, program, lock)
  }
  if (end.code === 0) return
  plan.signal.throwIfAborted()
  throw explainFailure(end.stderr, questionOf(plan))
}

function questionOf({ requirements, target, index, excludeNewer }: InstallPlan): Question {
  return { requirements, target, index: withoutCredentials(index.base), excludeNewer }
}

/** The command of a box in which the cache is the only writable directory; undefined without bubblewrap. */
function boxOf(cacheDir: string, work: string): string[] | undefined {
  const bwrap = process.platform === 'linux' ? programsNamed('bwrap', ['/usr/bin'])[0] : undefined
  if (bwrap === undefined) return undefined
  const measures = [
    [bwrap, '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--bind', cacheDir, cacheDir],
    ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--cap-drop', 'ALL'],
    ['--die-with-parent', '--new-session', '--chdir', work, '--'],
  ]
  return measures.flat()
}

interface ProgramEnd {
  readonly code: number | null
  readonly stderr: string
}

function runProgram(
  plan: InstallPlan,
  work: string,
  heldLocks: readonly number[],
  [program = '', ...args]: readonly string[],
  lock: Lock | undefined,
): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: work,
      // A lock that uv holds as well lasts until uv has ended, even if this process is killed.
      stdio: ['ignore', 'ignore', 'pipe', ...heldLocks],
      env: { ...uvVariables(), ...plan.index.variables, TMPDIR: work },
      signal: plan.signal,
      killSignal: 'SIGKILL',
    })
    let stderr = ''
    let unread = ''
    let arrived = 0
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      stderr = (stderr + chunk).slice(-MAX_OUTPUT)
      const lines = (unread + chunk).slice(-MAX_OUTPUT).split('\n')
      unread = lines.pop() ?? ''
      for (const line of lines) {
        const name = /^ Downloaded (\S{1,200})$/.exec(line)?.[1]
        if (name === undefined) continue
        arrived += lock?.packages.find((one) => one.name === name)?.bytes ?? 0
        plan.onDownloaded?.(arrived)
      }
    })
    let failure: unknown
    child.once('error', (error) => (failure = error))
    child.once('close', (code, signal) => {
      // It has no last words: the limit of one file was reached, in the box or without it.
      if (signal === 'SIGXFSZ' || code === 128 + constants.signals.SIGXFSZ) stderr += '\nFile too large\n'
      if (failure === undefined || plan.signal.aborted) resolve({ code, stderr })
      else reject(shortageError(failure, program) ?? new Error(`${program} cannot be started: ${messageOf(failure)}`))
    })
  })
}
