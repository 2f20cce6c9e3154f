import type { ExecResult } from '../index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { InstallLine } from './install-line.ts'
import { LiveLine } from './live-line.ts'
import { parseSandboxFlags } from './options.ts'
import { programFiles, programOptions, withFiles } from './program.ts'
import { inTerminal } from './shell.ts'
import { startSandglass } from './start.ts'
import { escapeForMessage } from './terminal-text.ts'
import { reword } from './wording.ts'

/** Exit codes, as timeout(1), env(1) and shells use them. */
const TIMED_OUT = 124
const NO_PROGRAM = 127
/** The bytes of each stream that `--json` shows. */
const MAX_OUTPUT_BYTES = 1024 * 1024

/** `sandglass exec`: one program in a workspace of its own. Resolves to the exit code. */
export async function exec(given: Given, context: Context): Promise<number> {
  const id = given.has('--new') ? undefined : given.positionals[0]
  const [command, ...args] = given.has('--new') ? given.positionals : given.positionals.slice(1)
  if (command === undefined && !given.has('--new')) {
    throw new UsageError(
      'invalid_request',
      'exec needs --new, a new workspace that ends with the program, or the ID of one that is kept: exec ID -- PROGRAM ARGS',
    )
  }
  if (command === undefined) throw new UsageError('invalid_request', 'exec needs a program: exec --new -- PROGRAM ARGS')
  if (given.has('--tty') && given.has('--json')) {
    throw new UsageError('invalid_request', '--tty is for people, --json for programs; give one of them')
  }
  const { options } = parseSandboxFlags(given, context.engines)
  const program = programOptions(given, context)
  const files = await programFiles(given, context)
  const live = new LiveLine(context.stderr, false, () => '')
  try {
    await using installing = new InstallLine(context)
    const environments = { onProgress: installing.onProgress }
    await using sandglass = await startSandglass({ ...options, environments, poolSize: 0, maxOverflow: 1 }, context)
    await using workspace = await withFiles(sandglass, given, files, context, !given.has('--json'), id)
    if (given.has('--tty')) {
      const code = await inTerminal(workspace, command, args, program, context)
      if (id !== undefined) await workspace.sync()
      return code
    }
    const stdin = process.stdin.isTTY ? undefined : process.stdin
    const result = await workspace.exec(command, args, {
      ...program,
      ...(stdin === undefined ? {} : { stdin }),
      signal: context.signal,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      ...(given.has('--json') ? {} : { onOutput: makeOutputWriter(context, live) }),
    })
    if (id !== undefined) await workspace.sync()
    if (given.has('--json')) await context.stdout.line(programLine(result))
    else if (result.exitCode === -1) await live.write(context.stderr, `sandglass: ${escapeForMessage(result.stderr)}\n`)
    return exitCodeOf(result)
  } catch (error) {
    throw reword(error, 'flags')
  } finally {
    await live.end()
    process.stdin.destroy() // a reader of a pipe that nobody closes would keep this process alive
  }
}

/** Writes output as it comes. On a terminal, `live` escapes what could drive it, and ends the style that the program leaves. */
function makeOutputWriter(
  { stdout, stderr }: Context,
  live: LiveLine,
): (output: { stream: 'stdout' | 'stderr'; bytes: Uint8Array }) => Promise<void> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  return async ({ stream, bytes }) => {
    const to = stream === 'stdout' ? stdout : stderr
    if (to.isTerminal) await live.pass(to, decoders[stream].decode(bytes, { stream: true }))
    else await to.write(bytes)
  }
}

/** The outcome of a program as one line of JSON (docs/cli.md). */
function programLine(result: ExecResult): Record<string, unknown> {
  return {
    v: 1,
    type: 'program',
    exit_code: result.exitCode,
    signal: result.signal,
    timed_out: result.timedOut,
    out_of_memory: result.outOfMemory,
    stdout: result.stdout,
    stderr: result.stderr,
    stdout_bytes: result.stdoutBytes,
    stderr_bytes: result.stderrBytes,
    truncated: result.truncated,
    duration_ms: result.durationMs,
  }
}

function exitCodeOf({ exitCode, timedOut }: Pick<ExecResult, 'exitCode' | 'timedOut'>): number {
  if (timedOut) return TIMED_OUT
  return exitCode === -1 ? NO_PROGRAM : exitCode
}
