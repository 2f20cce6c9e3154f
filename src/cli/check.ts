import type { Given } from './args.ts'
import { readText } from './bounded-read.ts'
import { type Context, supportsAnsi } from './context.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { InstallLine } from './install-line.ts'
import { parseSandboxFlags } from './options.ts'
import { inputName } from './run-request.ts'
import { escapeForMessage } from './terminal-text.ts'
import { startSandglass } from './start.ts'
import { toolsOf } from './tools-file.ts'
import { violationsText } from './violations-text.ts'
import { reword, rewordText } from './wording.ts'

const MAX_SCRIPT_BYTES = 32 * 1024 * 1024

/** `sandglass check`: finds mistakes in a script without running it. Resolves to the exit code. */
export async function check(given: Given, context: Context): Promise<number> {
  const { options, mode, policy } = parseSandboxFlags(given, context.engines)
  if (policy === 'off') throw new UsageError('invalid_request', '--policy off checks nothing; use standard or strict')
  const path = scriptPath(given)
  const names = given.all('--input').map((text) => inputName(text.split('=', 1)[0] ?? text))
  const script = await readText(path, path === '-' ? 'the script on stdin' : path, MAX_SCRIPT_BYTES, context.signal)
  const tools = await toolsOf(given, context)
  context.signal.throwIfAborted()
  try {
    // Only its checker is used: no sandbox is kept ready for scripts.
    await using installing = new InstallLine(context)
    // A person names the file, so its declarations count, as for run.
    const fromScript = path === '-' ? 'off' : 'declared'
    const environments = { fromScript, onProgress: installing.onProgress } as const
    await using sandglass = await startSandglass({ ...options, environments, poolSize: 0, maxOverflow: 1 }, context)
    const { ok, violations: found } = await sandglass.check(script, {
      policy: policy ?? 'standard',
      mode,
      inputs: Object.fromEntries(names.map((name) => [name, null])),
      signal: context.signal,
      ...(tools === undefined ? {} : { tools }),
    })
    const violations = found.map((one) => ({ ...one, message: rewordText(one.message, 'flags') }))
    if (given.has('--json')) await context.stdout.line({ ok, violations })
    else await report(context, path === '-' ? '<stdin>' : path, script, violations)
    return ok ? EXIT.ok : exitCodeOf('validation')
  } catch (error) {
    throw reword(error, 'flags')
  }
}

type Violations = Parameters<typeof violationsText>[2]

async function report(context: Context, path: string, script: string, violations: Violations): Promise<void> {
  const coloured = context.stdout.isTerminal && supportsAnsi(context)
  const count = violations.length === 1 ? '1 violation' : `${violations.length} violations`
  await context.stdout.write(
    violations.length === 0
      ? `${escapeForMessage(path)}: no violations\n`
      : `${violationsText(path, script, violations, coloured)}\n${count}; nothing was run\n`,
  )
}

function scriptPath(given: Given): string {
  const [path, ...others] = given.positionals
  if (path === undefined) {
    throw new UsageError('invalid_request', 'check needs a FILE, or - for stdin; see sandglass check --help')
  }
  if (others.length === 0) return path
  throw new UsageError('invalid_request', `check takes one FILE, but also got ${JSON.stringify(others[0])}`)
}
