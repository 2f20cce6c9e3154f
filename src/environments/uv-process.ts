import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, constants } from 'node:os'
import { join } from 'node:path'
import { messageOf, SandglassError, shortageError } from '../errors/index.ts'
import { programsNamed } from '../support/index.ts'
import { READ_ONLY } from './cache.ts'
import { uvVariables } from './index-settings.ts'

/** One call of uv. */
export interface UvCall {
  readonly uv: string
  /** The directory of the cache: the only place where uv can write, except for the parts that the host reads or executes. */
  readonly cacheDir: string
  readonly work: string
  readonly args: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  /** Descriptors of locks that uv inherits, so that they are held until uv has ended, even if this process is killed. */
  readonly heldLocks: readonly number[]
  readonly signal: AbortSignal
  readonly onLine?: ((line: string) => void) | undefined
  /** Called at intervals with the bytes that uv has written. */
  readonly onWritten?: ((bytes: number) => void) | undefined
}

/** The end of uv. */
export interface UvEnd {
  readonly code: number | null
  readonly stderr: string
}

/** Begins `stderr` if uv wrote too much; it is the kernel's message for a file that is too large. */
const TOO_LARGE = 'File too large'
const MAX_OUTPUT = 256 * 1024
/** The memory limit of uv, which holds index pages in memory, and the addition for the threads of each processor. */
const MAX_MEMORY = 2 * 1024 ** 3
const MEMORY_OF_PROCESSOR = 16 * 1024 ** 2
const WATCH_MS = 100

/** A started uv that waits for `run`, so that its sandbox starts during other work. */
export interface WaitingUv extends AsyncDisposable {
  /**
   * Lets uv work; to be called once.
   * @param maxBytes the limit of all files that it unpacks, together.
   * @throws SandglassError `installer_missing`, or the one of a host that lacks resources.
   */
  run(maxBytes: number): Promise<UvEnd>
}

/** Starts uv, in bubblewrap if available. This is additional protection: no code of a package is executed without it either. */
export function startUv(call: UvCall): WaitingUv {
  // All users can read its files, whatever the umask. `ulimit` counts in blocks of 512 bytes and in KiB.
  const memory = MAX_MEMORY + availableParallelism() * MEMORY_OF_PROCESSOR
  const limits = `umask 022; ulimit -d ${memory / 1024}; read -r blocks && ulimit -f "$blocks" && exec "$@" </dev/null`
  const program = ['/bin/sh', '-c', limits, 'sh', call.uv, ...call.args]
  const bubblewrap = bubblewrapOf(call)
  const inside = bubblewrap === undefined ? undefined : start(call, [...bubblewrap, ...program])
  return {
    async run(maxBytes) {
      const end = await inside?.run(maxBytes)
      if (end !== undefined && (end.code === 0 || !end.stderr.startsWith('bwrap: '))) return end
      return start(call, program).run(maxBytes)
    },
    async [Symbol.asyncDispose]() {
      await inside?.[Symbol.asyncDispose]()
    },
  }
}

/** The command of bubblewrap; undefined if it is missing. */
function bubblewrapOf({ cacheDir, work }: UvCall): string[] | undefined {
  const bwrap = process.platform === 'linux' ? programsNamed('bwrap', ['/usr/bin'])[0] : undefined
  if (bwrap === undefined) return undefined
  const measures = [
    // One mount for the directories of uv and of the work, because hard links cannot cross mounts.
    [bwrap, '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--bind', cacheDir, cacheDir],
    ...READ_ONLY.map((name) => ['--ro-bind', join(cacheDir, name), join(cacheDir, name)]),
    ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--cap-drop', 'ALL'],
    ['--die-with-parent', '--new-session', '--chdir', work, '--'],
  ]
  return measures.flat()
}

function start(call: UvCall, [program = '', ...args]: readonly string[]): WaitingUv {
  let stderr = ''
  let unread = ''
  let isTooLarge = false
  const child = spawn(program, args, {
    cwd: call.work,
    stdio: ['pipe', 'ignore', 'pipe', ...call.heldLocks],
    env: { ...uvVariables(), ...call.variables, TMPDIR: call.work },
    signal: call.signal,
    killSignal: 'SIGKILL',
  })
  child.stdin?.on('error', () => {}) // uv has ended; `close` reports the reason
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr = (stderr + chunk).slice(-MAX_OUTPUT)
    const lines = (unread + chunk).slice(-MAX_OUTPUT).split('\n')
    unread = lines.pop() ?? ''
    for (const line of lines) call.onLine?.(line)
  })
  const ended = new Promise<UvEnd>((resolve, reject) => {
    let failure: unknown
    child.once('error', (error) => (failure = error))
    child.once('close', (code, signal) => {
      // uv was killed at the limit for one file, with or without bubblewrap, and wrote no message.
      isTooLarge ||= signal === 'SIGXFSZ' || code === 128 + constants.signals.SIGXFSZ
      if (failure === undefined || call.signal.aborted) {
        resolve({ code, stderr: isTooLarge ? `${TOO_LARGE}\n${stderr}` : stderr })
      } else reject(shortageError(failure, program) ?? cannotStart(program, failure))
    })
  })
  const settled = ended.then(
    () => {},
    () => {},
  )
  return {
    async run(maxBytes) {
      child.stdin?.end(`${Math.ceil(maxBytes / 512)}\n`)
      // Without hard links, uv writes each file twice.
      const watch = setInterval(() => {
        const written = child.pid === undefined ? 0 : bytesWritten(child.pid)
        call.onWritten?.(written)
        if (written <= 2 * maxBytes) return
        isTooLarge = true
        child.kill('SIGKILL')
      }, WATCH_MS)
      try {
        return await ended
      } finally {
        clearInterval(watch)
      }
    },
    [Symbol.asyncDispose]() {
      child.stdin?.end() // a uv that still waits exits
      return settled
    },
  }
}

/** The bytes that a process and its descendants have written; 0 if the system does not report them. */
function bytesWritten(pid: number): number {
  try {
    const own = /^wchar: (\d{1,18})$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]
    const below = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? []
    return below.reduce((sum, child) => sum + bytesWritten(Number(child)), Number(own ?? 0))
  } catch {
    return 0
  }
}

function cannotStart(program: string, failure: unknown): SandglassError {
  return new SandglassError('installer_missing', `the installer ${program} cannot be started: ${messageOf(failure)}`, {
    cause: failure,
  })
}
