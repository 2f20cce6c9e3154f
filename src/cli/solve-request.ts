import { ExecutionMode } from '../executor/index.ts'
import type { SolveOptions } from '../index.ts'
import type { Given } from './args.ts'
import { readText } from './bounded-read.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { parseInputs, secretsFrom } from './run-request.ts'
import { parseCount, parseNumber } from './sizes.ts'

const MAX_TASK_BYTES = 1024 * 1024
const MOST = 1000
const MOST_TOKENS = 1e12
const MOST_SECONDS = 86_400 * 7

/** What a task is and how it is worked off, but for the model, the tools and the journal. */
export interface SolveRequest {
  readonly task: string
  readonly options: Omit<SolveOptions, 'model'>
}

/**
 * The task of `solve` and its own flags, read from the command line.
 * @throws UsageError naming the flag.
 */
export async function solveRequest(given: Given, { env, signal }: Context): Promise<SolveRequest> {
  const [text, ...others] = given.positionals
  if (text === undefined) {
    throw new UsageError('invalid_request', 'solve needs a TASK, or - for stdin; see sandglass solve --help')
  }
  if (others.length > 0) {
    throw new UsageError(
      'invalid_request',
      `solve takes one TASK, not also ${JSON.stringify(others[0])}: write it in quotes`,
    )
  }
  if (given.has('--max-steps') && !given.has('--interactive')) {
    throw new UsageError('invalid_request', '--max-steps belongs to --interactive; attempts are --max-retries')
  }
  const inputs = parseInputs(given.all('--input'))
  const maxRetries = counted(given, '--max-retries', 0, MOST)
  const maxSteps = counted(given, '--max-steps', 1, MOST)
  const options = {
    mode: given.has('--interactive') ? ExecutionMode.INTERACTIVE : ExecutionMode.PLAN,
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(maxSteps === undefined ? {} : { maxSteps }),
    budget: { tokens: counted(given, '--budget-tokens', 1, MOST_TOKENS), wallMs: budgetMs(given) },
    inputs,
    secrets: secretsFrom(given.all('--secret'), env),
  }
  const task = text === '-' ? await readText('-', 'the task on stdin', MAX_TASK_BYTES, signal) : text
  if (task.trim() === '') throw new UsageError('invalid_request', 'the task is empty; say what is wanted')
  return { task: task.replace(/^\uFEFF/, '').trim(), options }
}

function counted(given: Given, flag: string, min: number, max: number): number | undefined {
  const text = given.last(flag)
  return text === undefined ? undefined : parseCount(flag, text, min, max)
}

function budgetMs(given: Given): number | undefined {
  const text = given.last('--budget-seconds')
  if (text === undefined) return undefined
  const seconds = parseNumber('--budget-seconds', text)
  if (seconds >= 0.001 && seconds <= MOST_SECONDS) return seconds * 1000
  throw new UsageError(
    'invalid_request',
    `--budget-seconds: ${text} is not a number of seconds from 0.001 to ${MOST_SECONDS}`,
  )
}
