import type { ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, SandglassError } from '../../errors/index.ts'
import {
  awaitReady,
  type Channel,
  type EnforcedLimit,
  type Ending,
  harnessConfig,
  PYTHON_FLAGS,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import { isLiving, startOf } from '../../support/index.ts'
import { bwrapArgs, FD, type Layout } from './bwrap-args.ts'
import type { Cgroup } from './cgroups.ts'
import type { InfoFile } from './info-file.ts'
import { startCode } from './mark.ts'
import { inspectOutside, type Outside } from './outside.ts'
import { spawnLauncher } from './spawn-launcher.ts'
import { killSame } from './process-id.ts'
import { awaitEnd, killSandbox } from './sandbox-processes.ts'
import { streamChannel } from './stream-channel.ts'

/** The options of the sandbox to start. */
export interface Launch extends Layout {
  /** The id of the sandbox, in the command line of its processes. */
  readonly id: string
  /** Opens the file in which bubblewrap describes the sandbox. */
  openInfo(): InfoFile
  readonly bwrap: string
  readonly python: string
  /** The uid to drop to before bubblewrap starts; undefined keeps the caller's. */
  readonly uid: number | undefined
  readonly cgroup: Cgroup | undefined
  readonly spec: SandboxSpec
  readonly startTimeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** Time to wait for the last output of a launcher that has ended. */
const LAST_OUTPUT_MS = 2000

/** A started sandbox. */
export interface Launched {
  readonly channel: Channel
  readonly ready: ReadyFrame
  readonly pid: number
  /** The sandbox as the host's kernel shows it. */
  readonly outside: Outside
  /** The limits whose control group holds the sandbox, as the kernel reports it. */
  readonly held: readonly EnforcedLimit[]
  readonly closed: Promise<Ending>
  /** Kills everything in the sandbox; resolves when the kernel confirmed it. */
  kill(): Promise<void>
}

/**
 * Starts bubblewrap with the harness as PID 1 inside, joins the control groups before the harness runs, and waits
 * until it is ready.
 * @throws SandglassError `userns_forbidden`, `sandbox_setup_failed`, `harness_start_failed`, `aborted`.
 */
export async function launch(options: Launch): Promise<Launched> {
  const boundsAddressSpace = (options.cgroup?.memoryKills() ?? null) === null
  const launched = await start(options, boundsAddressSpace)
  if (boundsAddressSpace || launched.held.includes('memory')) return launched
  // It is not in its memory group. Limiting each process instead takes a new start.
  await launched.kill()
  return start(options, true)
}

async function start(options: Launch, boundsAddressSpace: boolean): Promise<Launched> {
  using infoFile = options.openInfo()
  const child = await spawnLauncher({
    bwrap: options.bwrap,
    args: makeCommand(options, boundsAddressSpace),
    info: infoFile.writing,
    uid: options.uid,
  })
  const pipes = child.stdio as unknown as readonly unknown[]
  const output = captureOutput(child.stderr)
  const inner: Inner = { pid: 0, start: undefined, killed: false }
  const closed = awaitEnding(child, output, inner, options.id)
  unrefAll(child)
  const kill = (): Promise<void> => killAll(child, inner, closed)
  try {
    const channel = streamChannel(child.stdout, child.stdin)
    // Sent through a pipe, because every process inside can read the command line.
    sendLast(pipes[FD.args] as Writable, `${bwrapArgs(options).join('\0')}\0`)
    const { pid, info } = await awaitInnerPid(infoFile, closed, options)
    inner.pid = pid
    inner.start = startOf(pid)
    await options.cgroup?.add(inner.pid)
    sendLast(pipes[FD.block] as Writable, 'go')
    const ready = await awaitReady(channel, {
      timeoutMs: options.startTimeoutMs,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      lastOutput: output,
    })
    // Not earlier: bubblewrap makes its last namespace just before it starts the harness.
    const outside = inspectOutside({ pid, uid: options.uid ?? process.getuid?.() ?? 0, info })
    return { channel, ready, pid, outside, held: options.cgroup?.holds(pid) ?? [], closed, kill }
  } catch (error) {
    if (child.exitCode !== null) await awaitStreamEnd(child.stderr) // its exit can be reported before its last output
    await kill()
    throw explainFailure(error, output())
  }
}

function makeCommand(options: Launch, boundsAddressSpace: boolean): string[] {
  const config = harnessConfig({
    limits: options.limits,
    packages: options.packages !== undefined,
    toolsDir: options.toolsDir !== undefined,
    preload: options.spec.preload ?? [],
    checker: options.spec.checker === true,
    activities: options.spec.activities === true,
    boundsAddressSpace,
  })
  return ['--args', String(FD.args), '--', options.python, ...PYTHON_FLAGS, '-c', startCode(options.id), config]
}

/**
 * Waits for the pid of the harness as the host sees it, and for the description that bubblewrap writes once the namespaces
 * exist, a few milliseconds after its start. A file signals no write, so it is polled.
 */
async function awaitInnerPid(
  infoFile: InfoFile,
  closed: Promise<Ending>,
  options: Launch,
): Promise<{ pid: number; info: string }> {
  let ending: Ending | undefined
  void closed.then((how) => (ending = how))
  const deadline = performance.now() + options.startTimeoutMs
  for (let pause = 1; ; pause = Math.min(pause * 1.1, 10)) {
    const info = infoFile.read()
    const pid = /"child-pid":\s*(\d+)/.exec(info)?.[1]
    if (pid !== undefined && info.includes('}')) return { pid: Number(pid), info }
    if (options.signal?.aborted === true) throw new SandglassError('aborted', 'aborted while a sandbox was starting')
    if (ending !== undefined)
      throw new Error(`bubblewrap ended with ${ending.signal ?? `exit code ${ending.exitCode}`}`)
    if (performance.now() > deadline) throw new Error(`bubblewrap wrote nothing for ${options.startTimeoutMs} ms`)
    await sleep(pause)
  }
}

function sendLast(stream: Writable, text: string): void {
  stream.on('error', () => {}) // the exit of the process has more details
  stream.end(text)
}

/** Keeps the first 8 KiB of stderr for messages. */
function captureOutput(stderr: Readable): () => string {
  let text = ''
  stderr.on('data', (chunk: Buffer) => {
    if (text.length < 8192) text += chunk.toString('utf8')
  })
  stderr.on('error', () => {})
  return () => text.slice(0, 8192)
}

/** Resolves at the end of a stream, or when that takes too long. */
async function awaitStreamEnd(stream: Readable): Promise<void> {
  const late = new AbortController()
  const end = new Promise<void>((resolve) => {
    stream.once('close', resolve)
    if (stream.closed) resolve()
  })
  await Promise.race([end, sleep(LAST_OUTPUT_MS, undefined, { signal: late.signal })])
  late.abort()
}

/** PID 1 of a sandbox, as the launcher reports it. */
interface Inner {
  /** Its number on the host; 0 until it is known. */
  pid: number
  /** The start time. With the number it identifies the process. */
  start: string | undefined
  /** True if the host killed it. */
  killed: boolean
}

function awaitEnding(child: ChildProcess, output: () => string, inner: Inner, id: string): Promise<Ending> {
  return new Promise((resolve) => {
    const finish = (exitCode: number | null, signal: string | null): void => {
      const message = output().trim()
      const ending: Ending = {
        cause: inner.killed ? 'destroyed' : signal === null ? 'exit' : 'signal',
        exitCode,
        signal,
        by: inner.killed ? 'host' : 'unknown',
        ...(message === '' ? {} : { message }),
      }
      void killInner(id, inner)
        .catch(() => {}) // no descriptor is left to read /proc: the next start finds the remaining processes
        .finally(() => resolve(ending))
    }
    child.once('exit', finish)
    child.once('error', () => finish(null, null))
  })
}

/**
 * Kills PID 1 if bubblewrap was killed before it. PID 1 dies with bubblewrap only after its last step before the harness; until
 * then it would wait for bubblewrap forever.
 */
async function killInner(id: string, { pid, start }: Inner): Promise<void> {
  if (start === undefined) return killSandbox(id)
  if (!isLiving(pid, start)) return undefined
  killSame(pid, start)
  return awaitEnd([{ pid, start }])
}

/** Kills the sandbox. PID 1 of the namespace dies last, and bubblewrap after it: then nothing is left. */
async function killAll(child: ChildProcess, inner: Inner, closed: Promise<Ending>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    inner.killed = true
    // PID 1 first: bubblewrap ends after it, and its exit then proves that nothing is left.
    if (!killSame(inner.pid, inner.start)) child.kill('SIGKILL')
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), 2000)
  await closed
  clearTimeout(timer)
  for (const stream of child.stdio) stream?.destroy()
}

/** An idle sandbox must not keep the host's process alive; it dies with it. */
function unrefAll(child: ChildProcess): void {
  child.unref()
  for (const stream of child.stdio) (stream as unknown as { unref?: () => void } | null)?.unref?.()
}

function explainFailure(error: unknown, output: string): unknown {
  const text = output.trim()
  if (
    /(No permissions to creat\w+ (a )?new namespace|Creating new namespace failed|setting up uid map|unshare user ns|user namespace|Failed RTM_NEW|Operation not permitted.*clone)/i.test(
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
