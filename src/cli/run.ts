import type { ExecutionResult, RunEvent } from '../executor/index.ts'
import { createSandglass } from '../index.ts'
import type { Given } from './args.ts'
import { type Context, isLively } from './context.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { LiveLine } from './live-line.ts'
import { sandboxFlags } from './options.ts'
import { toolsOf } from './tools-file.ts'
import { eventLine, resultLine } from './result-line.ts'
import { runRequest } from './run-request.ts'
import { RunTeller } from './run-teller.ts'
import { prepareSaving, saveFiles } from './save.ts'
import { reworded } from './wording.ts'

/** `sandglass run`: one script in one sandbox. Resolves to the exit code. */
export async function run(given: Given, context: Context): Promise<number> {
  const { options, mode, policy } = sandboxFlags(given)
  if (given.has('--save') && !given.has('--collect')) {
    throw new UsageError('invalid_request', '--save needs --collect GLOB, which names the files to save')
  }
  const { script, ...request } = await runRequest(given, context)
  const tools = await toolsOf(given, context)
  const directory = given.last('--save')
  const saving = directory === undefined ? undefined : prepareSaving(directory)
  const teller =
    given.has('--json') || given.has('--events') ? lineTeller(given, context) : humanTeller(given, script, context)
  try {
    context.signal.throwIfAborted()
    const sandglass = await createSandglass({ ...options, poolSize: 1, maxOverflow: 0, signal: context.signal })
    let result: ExecutionResult
    try {
      result = await sandglass.run(script, {
        ...request,
        mode,
        ...(policy === undefined ? {} : { policy }),
        ...(tools === undefined ? {} : { tools }),
        signal: context.signal,
        onEvent: (event) => teller.event(event),
      })
    } finally {
      await sandglass.close()
    }
    const problems = saving === undefined ? [] : saveFiles(saving, result.files)
    await teller.result(withProblems(result, problems))
    const code = exitCodeOf(result.errorKind)
    return code === EXIT.ok && problems.length > 0 ? EXIT.usage : code
  } catch (error) {
    throw reworded(error, 'flags')
  } finally {
    await teller.end()
  }
}

/** Tells a run while it goes on, and at its end. */
interface Teller {
  event(event: RunEvent): Promise<void>
  result(result: ExecutionResult): Promise<void>
  end(): Promise<void>
}

function lineTeller(given: Given, { stdout }: Context): Teller {
  return {
    async event(event) {
      if (given.has('--events') && event.type !== 'result') await stdout.line(eventLine(event))
    },
    result: (result) => stdout.line(resultLine(null, result)),
    end: async () => {},
  }
}

function humanTeller(given: Given, script: string, context: Context): Teller {
  const started = performance.now()
  const status = (): string => `running for ${((performance.now() - started) / 1000).toFixed(1)} s, Ctrl-C cancels`
  const live = new LiveLine(context.stderr, isLively(context), status)
  const [path = '-'] = given.positionals
  return new RunTeller(context, live, { path: path === '-' ? '<stdin>' : path, text: script })
}

function withProblems(result: ExecutionResult, problems: readonly string[]): ExecutionResult {
  const warnings = problems.map((message) => ({ code: 'not_saved', message, traceback: null }))
  return problems.length === 0 ? result : { ...result, warnings: [...result.warnings, ...warnings] }
}
