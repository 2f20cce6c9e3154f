import { memoryStore } from '../journal/index.ts'
import type { LLMCaller } from '../llm/index.ts'
import { ScriptGenerator } from '../script/index.ts'
import { definedOf } from '../support/index.ts'
import { currentTrace } from '../telemetry/index.ts'
import { jsonSchemaOf, type ToolSet } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import type { Ground, Job } from './job.ts'
import { type TaskOptions, wholeNumber } from './options.ts'

const MAX_RETRIES = 3
const MAX_STEPS = 10
const LLM_TIMEOUT_MS = 120_000
/** A timer cannot wait for longer. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** What `strict` lets a script import; the most useful first. */
const STRICT_MODULES = [
  'json',
  'math',
  're',
  'datetime',
  'collections',
  'itertools',
  'functools',
  'statistics',
  'decimal',
  'fractions',
  'random',
  'string',
  'textwrap',
  'time',
  'typing',
  'dataclasses',
  'enum',
  'copy',
  'heapq',
  'bisect',
  'hashlib',
  'base64',
  'uuid',
]

/**
 * A task with every default in place.
 * @throws TypeError naming the option that is wrong.
 */
export function makeJob<T>(
  task: string,
  base: { readonly ground: Ground; readonly llmCall: LLMCaller; readonly tools: ToolSet | undefined },
  options: TaskOptions<T>,
): Job<T> {
  if (typeof task !== 'string' || task.trim() === '')
    throw new TypeError('task: must be a text that says what is wanted')
  const { policy = 'strict', allowModules = [], inputs = {}, output } = options
  const keepsState = 'state' in options
  return {
    task,
    ...base,
    generator: new ScriptGenerator({
      tools: base.tools,
      ...definedOf(options, ['prompts', 'instructions', 'maxToolChars', 'preamble', 'postamble']),
      inputs,
      outputSchema: schemaOf(output),
      keepsState,
      modules: policy === 'strict' ? [...STRICT_MODULES, ...allowModules] : undefined,
    }),
    llmTimeoutMs: Math.min(wholeNumber('llmTimeoutMs', options.llmTimeoutMs ?? LLM_TIMEOUT_MS, 1), MAX_TIMER_MS),
    toolLimits: options.toolLimits ?? {},
    policy,
    allowModules,
    limits: options.limits ?? {},
    maxRetries: wholeNumber('maxRetries', options.maxRetries ?? MAX_RETRIES, 0),
    maxSteps: wholeNumber('maxSteps', options.maxSteps ?? MAX_STEPS, 1),
    budget: options.budget ?? {},
    inputs,
    secrets: options.secrets ?? {},
    hide: options.hide ?? {},
    output,
    state: keepsState ? { initial: options.state ?? null } : undefined,
    journal: options.journal ?? memoryStore({ maxRuns: 1 }),
    keepPrompts: options.keepPrompts ?? false,
    traceId: options.traceId ?? currentTrace()?.traceId ?? null,
    signal: options.signal,
    onEvent: options.onEvent,
  }
}

/** What a model is told of the answer's shape; nothing where the library of the schema cannot say it. */
function schemaOf(output: StandardSchema<unknown> | undefined): unknown {
  if (output === undefined) return undefined
  try {
    return jsonSchemaOf(output as never, 'input')
  } catch {
    return undefined
  }
}
