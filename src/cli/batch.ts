import { availableParallelism } from 'node:os'
import type { Sandglass, SandglassOptions } from '../index.ts'
import { MAX_TIMER_MS } from '../support/index.ts'
import { answersIn, answersTo } from './answers.ts'
import type { Given } from './args.ts'
import { BatchRun } from './batch-run.ts'
import { openInput, sizeOf } from './bounded-read.ts'
import { type Context, supportsAnsi, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { InstallLine } from './install-line.ts'
import { LiveLine } from './live-line.ts'
import { parseSandboxFlags } from './options.ts'
import { parseCount } from './sizes.ts'
import { startSandglass } from './start.ts'
import { toolsOf } from './tools-file.ts'

/** With one, no request would run while the sandbox of the last one is proven clean. */
const MIN_POOL_SIZE = 2
const MAX_COUNT = 512
/** A request may wait for the sandboxes of its own batch as long as necessary. */
const CHECKOUT_TIMEOUT_MS = MAX_TIMER_MS

/** `sandglass batch`: reads one request per line and writes one answer per request. Resolves to the exit code. */
export async function batch(given: Given, context: Context): Promise<number> {
  const { options, mode, policy } = parseSandboxFlags(given, context.engines)
  const { concurrency, ...pool } = sizesOf(given, availableParallelism())
  const path = inputPath(given)
  const tools = await toolsOf(given, context)
  const input = openInput(path, path, context.signal)
  const out = given.last('--out')
  await using answers = out === undefined ? answersTo(context.stdout) : await answersIn(out)
  const installing = new InstallLine(context)
  const environments = { onProgress: installing.onProgress }
  const sandglass = await start({ ...options, ...pool, environments, checkoutTimeoutMs: CHECKOUT_TIMEOUT_MS }, context)
  await installing[Symbol.asyncDispose]()
  const running = new BatchRun({
    sandglass,
    answers,
    note: (text) => note(context, text),
    concurrency,
    mode,
    limits: options.limits ?? {},
    policy,
    tools,
    signal: context.signal,
  })
  // Lines on the same terminal as the answers would mix with them.
  const isWatched = context.stderr.isTerminal && (out !== undefined || !context.stdout.isTerminal)
  const size = sizeOf(path)
  const cpuMs = measureCpu(sandglass)
  const live = new LiveLine(context.stderr, isWatched && supportsAnsi(context), () => running.progress.text(size))
  try {
    await running.serve(input)
  } finally {
    input.destroy()
    await sandglass.close()
    await live.end()
  }
  if (isWatched) await note(context, running.progress.summary(cpuMs()))
  if (!context.signal.aborted) return EXIT.ok
  if (!context.isStdoutClosed()) await note(context, cancelledNote(out))
  return EXIT.cancelled
}

/** Returns a function that returns the CPU time of this process and of the sandboxes since now, in milliseconds; null if it is unknown. */
function measureCpu(sandglass: Sandglass): () => number | null {
  const atStart = process.cpuUsage()
  const before = sandglass.stats().cpuTimeMs
  return () => {
    const { user, system } = process.cpuUsage(atStart)
    const now = sandglass.stats().cpuTimeMs
    return before === null || now === null ? null : (user + system) / 1000 + now - before
  }
}

/** Starts the engine and its first sandbox; a signal in the meantime removes both. */
async function start(options: SandglassOptions, context: Context): Promise<Sandglass> {
  const { signal } = context
  signal.throwIfAborted()
  const sandglass = await startSandglass(options, context)
  if (signal.aborted) await sandglass.close()
  signal.throwIfAborted()
  return sandglass
}

function inputPath(given: Given): string {
  const [path = '-', ...others] = given.positionals
  if (others.length === 0) return path
  throw new UsageError('invalid_request', `batch takes one FILE, but also got ${JSON.stringify(others[0])}`)
}

/** Returns the sizes that the flags give, or those that fit a machine with `cpus` CPUs. */
export function sizesOf(given: Given, cpus: number): { concurrency: number; poolSize: number; maxUses?: number } {
  const count = (flag: string): number | undefined => {
    const text = given.last(flag)
    return text === undefined
      ? undefined
      : parseCount(flag, text, 1, flag === '--max-uses' ? Number.MAX_SAFE_INTEGER : MAX_COUNT)
  }
  const wanted = count('--concurrency')
  const poolSize = count('--pool-size') ?? Math.min(Math.max(wanted ?? cpus, MIN_POOL_SIZE), MAX_COUNT)
  const maxUses = count('--max-uses')
  return { concurrency: wanted ?? poolSize, poolSize, ...(maxUses === undefined ? {} : { maxUses }) }
}

function cancelledNote(out: string | undefined): string {
  return out === undefined
    ? 'cancelled; requests that had not started have no answer'
    : `cancelled; run the same command again to continue ${out}`
}
