import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { awaitReady, type Channel, type Ending, type SandboxSpec } from '../../sandbox/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import { bwrapArgs, FD, INSIDE, type Layout } from './bwrap-args.ts'
import type { Cgroup } from './cgroups.ts'
import { lookAt, type Outside } from './outside.ts'
import { killSame, startOf } from './process-id.ts'
import { streamChannel } from './socket-channel.ts'

/** What to start. */
export interface Launch extends Layout {
  readonly bwrap: string
  readonly python: string
  /** The uid to drop to before bubblewrap starts; undefined keeps the caller's. */
  readonly uid: number | undefined
  readonly cgroup: Cgroup | undefined
  readonly spec: SandboxSpec
  readonly startTimeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** A started sandbox. */
export interface Launched {
  readonly channel: Channel
  readonly ready: ReadyFrame
  readonly pid: number
  /** What the host's kernel says of it. */
  readonly outside: Outside
  readonly closed: Promise<Ending>
  /** Kills everything in the sandbox; resolves when the kernel confirmed it. */
  kill(): Promise<void>
}

const PYTHON_FLAGS = ['-I', '-S', '-B', '-X', 'utf8']
const START = `import sys; sys.path.insert(0, ${JSON.stringify(INSIDE.harness)}); from sandglass_harness import start; start.main()`

/**
 * Starts bubblewrap with the harness as PID 1 inside, joins the control groups before anything of it runs, and waits
 * until it is ready.
 * @throws SandglassError `userns_forbidden`, `sandbox_setup_failed`, `harness_start_failed`, `aborted`.
 */
export async function launch(options: Launch): Promise<Launched> {
  const child = spawn(options.bwrap, command(options), {
    // Nothing of the host's environment: /proc/1/environ would show it.
    env: {},
    cwd: '/',
    // A session of its own: Ctrl-C in the terminal is the host's to handle.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  })
  const pipes = child.stdio as unknown as readonly unknown[]
  const words = lastWords(child.stdio[2])
  const inner: Inner = { pid: 0, start: undefined, killed: false }
  const closed = ended(child, words, inner)
  letTheProcessExit(child)
  const kill = (): Promise<void> => killAll(child, inner, closed)
  try {
    await started(child, options.bwrap)
    const channel = streamChannel(child.stdio[1], child.stdio[0])
    // Not the command line, which every process inside could read.
    endWith(pipes[FD.args] as Writable, `${bwrapArgs(options).join('\0')}\0`)
    const { pid, info } = await innerPid(pipes[FD.info] as Readable, closed, options)
    inner.pid = pid
    inner.start = startOf(pid)
    options.cgroup?.add(inner.pid)
    endWith(pipes[FD.block] as Writable, 'go')
    const ready = await awaitReady(channel, {
      timeoutMs: options.startTimeoutMs,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      lastWords: words,
    })
    // Not earlier: bubblewrap makes its last namespace just before it starts the harness.
    const outside = lookAt({ pid, uid: options.uid ?? process.getuid?.() ?? 0, info })
    return { channel, ready, pid, outside, closed, kill }
  } catch (error) {
    await kill()
    throw explained(error, words())
  }
}

function command(options: Launch): string[] {
  const { limits } = options
  const config = {
    scratch: INSIDE.scratch,
    workspace: INSIDE.workspace,
    import_paths: options.packages === undefined ? [] : [INSIDE.packages],
    tools: options.toolsDir === undefined ? null : INSIDE.tools,
    preload: options.spec.preload ?? [],
    rlimits: {
      RLIMIT_CORE: [0, 0],
      RLIMIT_NOFILE: [1024, 4096],
      RLIMIT_NPROC: [limits.pids, limits.pids],
      // Counted per uid of the host: one script could take the slots of all.
      RLIMIT_SIGPENDING: [512, 512],
      RLIMIT_MSGQUEUE: [0, 0],
      RLIMIT_MEMLOCK: [65_536, 65_536],
      ...(options.cgroup?.memoryKills() === null || options.cgroup === undefined
        ? { RLIMIT_AS: [limits.memoryBytes, limits.memoryBytes] }
        : {}),
    },
  }
  return ['--args', String(FD.args), '--', options.python, ...PYTHON_FLAGS, '-c', START, JSON.stringify(config)]
}

function started(child: ChildProcess, bwrap: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) => {
      reject(new SandglassError('bubblewrap_missing', `${bwrap} cannot be started: ${error.message}`, { cause: error }))
    })
  })
}

/** The pid of the harness as the host sees it, and all that bubblewrap tells once the namespaces exist. */
async function innerPid(
  info: Readable,
  closed: Promise<Ending>,
  options: Launch,
): Promise<{ pid: number; info: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ pid: number; info: string }>()
  let text = ''
  const timer = setTimeout(
    () => reject(new Error(`bubblewrap was silent for ${options.startTimeoutMs} ms`)),
    options.startTimeoutMs,
  )
  const onAbort = (): void => reject(new SandglassError('aborted', 'aborted while a sandbox was starting'))
  options.signal?.addEventListener('abort', onAbort)
  if (options.signal?.aborted === true) onAbort()
  info.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString('latin1')).slice(0, 4096)
    const pid = /"child-pid":\s*(\d+)/.exec(text)?.[1]
    if (pid !== undefined && text.includes('}')) resolve({ pid: Number(pid), info: text })
  })
  info.on('error', () => {})
  void closed.then((ending) => reject(new Error(`bubblewrap ended with exit code ${ending.exitCode ?? ending.signal}`)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', onAbort)
  }
}

function endWith(stream: Writable, text: string): void {
  stream.on('error', () => {}) // the end of the process tells more
  stream.end(text)
}

/** The head of what the machinery says on stderr, kept for messages. */
function lastWords(stderr: Readable): () => string {
  let text = ''
  stderr.on('data', (chunk: Buffer) => {
    if (text.length < 8192) text += chunk.toString('utf8')
  })
  stderr.on('error', () => {})
  return () => text.slice(0, 8192)
}

/** What the launcher tells of its sandbox. */
interface Inner {
  /** Its PID 1, as the host sees it; 0 until that is known. */
  pid: number
  /** With the number, it names the process. */
  start: string | undefined
  /** Whether the host killed it. */
  killed: boolean
}

function ended(child: ChildProcess, words: () => string, inner: Inner): Promise<Ending> {
  return new Promise((resolve) => {
    const done = (exitCode: number | null, signal: string | null): void => {
      const message = words().trim()
      resolve({
        cause: inner.killed ? 'destroyed' : signal === null ? 'exit' : 'signal',
        exitCode,
        signal,
        by: inner.killed ? 'host' : 'unknown',
        ...(message === '' ? {} : { message }),
      })
    }
    child.once('exit', done)
    child.once('error', () => done(null, null))
  })
}

/** PID 1 of the namespace dies last, and bubblewrap after it: when it is gone, nothing is left. */
async function killAll(child: ChildProcess, inner: Inner, closed: Promise<Ending>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    inner.killed = true
    // PID 1 inside first: bubblewrap ends after it, and its end then says that nothing is left.
    if (!killSame(inner.pid, inner.start)) child.kill('SIGKILL')
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), 2000)
  await closed
  clearTimeout(timer)
  for (const stream of child.stdio) stream?.destroy()
}

/** An idle sandbox must not keep the host's process alive; it dies with it. */
function letTheProcessExit(child: ChildProcess): void {
  child.unref()
  for (const stream of child.stdio) (stream as unknown as { unref?: () => void } | null)?.unref?.()
}

function explained(error: unknown, words: string): unknown {
  const text = words.trim()
  if (
    /(No permissions to create a new namespace|Creating new namespace failed|setting up uid map|user namespace|Operation not permitted.*clone)/i.test(
      text,
    )
  ) {
    return new SandglassError(
      'userns_forbidden',
      `bubblewrap cannot make user namespaces: ${text}. Usual causes: Ubuntu's AppArmor rule ` +
        '(sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap), a sysctl ' +
        '(user.max_user_namespaces, kernel.unprivileged_userns_clone), or a container whose seccomp profile forbids it ' +
        '(docs/running-in-a-container.md)',
      { cause: error },
    )
  }
  if (text.startsWith('bwrap:')) {
    return new SandglassError('sandbox_setup_failed', `bubblewrap could not build the sandbox: ${text}`, {
      cause: error,
    })
  }
  return error instanceof SandglassError
    ? error
    : new SandglassError(
        'sandbox_setup_failed',
        `the sandbox did not start: ${messageOf(error)}${text === '' ? '' : `: ${text}`}`,
        { cause: error },
      )
}
