import { messageOf } from '../errors/index.ts'
import { ExecutionMode } from '../executor/index.ts'
import type { SolveOptions } from '../index.ts'
import { checkPricing, type Pricing } from '../llm/index.ts'
import type { Given } from './args.ts'
import { readText } from './bounded-read.ts'
import type { Context } from './context.ts'
import { formatValue } from '../support/index.ts'
import { UsageError } from './failure.ts'
import { outputSchema } from './output-schema.ts'
import { parseInputs, readFiles, refuseStdinTwice, secretsFrom } from './run-request.ts'
import { parseCount, parseNumber } from './sizes.ts'

const MAX_TASK_BYTES = 1024 * 1024
const MAX_PRICING_BYTES = 1024 * 1024
const MAX_COUNT = 1000
const MAX_TOKENS = 1e12
const MAX_SECONDS = 86_400 * 7

/** A task and its options, without the model, the tools and the journal. */
export interface SolveRequest {
  readonly task: string
  readonly options: Omit<SolveOptions, 'model'>
}

/**
 * Reads the task and the flags of `solve` from the command line.
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
      `solve takes one TASK, but also got ${JSON.stringify(others[0])}; quote a task that contains spaces`,
    )
  }
  if (given.has('--max-steps') && !given.has('--interactive')) {
    throw new UsageError('invalid_request', '--max-steps needs --interactive; to limit retries, use --max-retries')
  }
  if (given.has('--session') && !given.has('--interactive')) {
    throw new UsageError('invalid_request', '--session needs --interactive: the steps are its cells')
  }
  if (given.has('--on-error') && !given.has('--session')) {
    throw new UsageError('invalid_request', '--on-error needs --session')
  }
  refuseStdinTwice(given, text, 'task')
  const inputs = parseInputs(given.all('--input'))
  const maxRetries = readCount(given, '--max-retries', 0, MAX_COUNT)
  const maxSteps = readCount(given, '--max-steps', 1, MAX_COUNT)
  const schema = given.last('--output')
  const prices = given.last('--pricing')
  const pricing = prices === undefined ? undefined : await readPricing(prices, signal)
  if (pricing === undefined && given.has('--budget-cost')) {
    throw new UsageError('invalid_request', '--budget-cost needs --pricing FILE with the prices of the model')
  }
  const options = {
    mode: given.has('--interactive') ? ExecutionMode.INTERACTIVE : ExecutionMode.PLAN,
    ...(given.has('--session') ? { session: true, onError: onErrorOf(given) } : {}),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(maxSteps === undefined ? {} : { maxSteps }),
    budget: {
      tokens: readCount(given, '--budget-tokens', 1, MAX_TOKENS),
      wallMs: budgetMs(given),
      cost: budgetCost(given),
    },
    ...(pricing === undefined ? {} : { pricing }),
    inputs,
    secrets: secretsFrom(given.all('--secret'), env),
    files: await readFiles(given.all('--file'), signal),
    collect: given.all('--collect'),
    allowModules: given.all('--allow-module').map(moduleName),
    keepPrompts: given.has('--keep-prompts'),
    ...(schema === undefined ? {} : { output: await outputSchema(schema, signal) }),
  }
  const task = text === '-' ? await readText('-', 'the task on stdin', MAX_TASK_BYTES, signal) : text
  if (task.trim() === '') throw new UsageError('invalid_request', 'the task is empty; describe what the script must do')
  return { task: task.replace(/^\uFEFF/, '').trim(), options }
}

function onErrorOf(given: Given): 'keep' | 'rollback' {
  const text = given.last('--on-error') ?? 'keep'
  if (text === 'keep' || text === 'rollback') return text
  throw new UsageError('invalid_request', `--on-error: ${formatValue(text)} is neither keep nor rollback`)
}

function moduleName(text: string): string {
  if (/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(text)) return text
  throw new UsageError('invalid_request', `--allow-module: ${formatValue(text)} is not the name of a module`)
}

function readCount(given: Given, flag: string, min: number, max: number): number | undefined {
  const text = given.last(flag)
  return text === undefined ? undefined : parseCount(flag, text, min, max)
}

function budgetCost(given: Given): number | undefined {
  const text = given.last('--budget-cost')
  if (text === undefined) return undefined
  const cost = parseNumber('--budget-cost', text)
  if (cost > 0) return cost
  throw new UsageError('invalid_request', `--budget-cost: ${text} is not a number above 0`)
}

async function readPricing(path: string, signal: AbortSignal): Promise<Pricing> {
  const text = await readText(path, '--pricing', MAX_PRICING_BYTES, signal)
  try {
    return checkPricing(JSON.parse(text) as Pricing)
  } catch (error) {
    throw new UsageError('invalid_request', `--pricing ${path}: ${messageOf(error)}`)
  }
}

function budgetMs(given: Given): number | undefined {
  const text = given.last('--budget-seconds')
  if (text === undefined) return undefined
  const seconds = parseNumber('--budget-seconds', text)
  if (seconds >= 0.001 && seconds <= MAX_SECONDS) return seconds * 1000
  throw new UsageError(
    'invalid_request',
    `--budget-seconds: ${text} is not a number of seconds from 0.001 to ${MAX_SECONDS}`,
  )
}
