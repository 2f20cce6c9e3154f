import type { Policy } from '../executor/index.ts'
import type { JournalEvent, JournalStore } from '../journal/index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import type { Prompts } from '../script/index.ts'
import type { ToolLimits } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import type { SolveBudget } from './budget.ts'

/** How tasks are worked off; every one can bring its own. */
export interface SolveDefaults {
  /** Attempts after the first, in PLAN mode of the task, else of each step. Default 3. */
  readonly maxRetries?: number | undefined
  /** Steps in INTERACTIVE mode. Default 10. */
  readonly maxSteps?: number | undefined
  /** What is looked for before a script runs. Default `strict`. */
  readonly policy?: Policy | undefined
  /** Modules that scripts may import beside those of `strict`. */
  readonly allowModules?: readonly string[] | undefined
  /** Timeout and output of each script. */
  readonly limits?: ResourceLimits | undefined
  /** Calls of one script, and how many at a time. */
  readonly toolLimits?: ToolLimits | undefined
  /** What a task may cost in all. Default: no budget. */
  readonly budget?: SolveBudget | undefined
  /** How long one answer of the model may take, in milliseconds. Default 120,000. */
  readonly llmTimeoutMs?: number | undefined
  /** Said to the model before the functions. */
  readonly instructions?: string | undefined
  /** Python that is run before every script, in its globals; trusted, and shown to the model. */
  readonly preamble?: string | undefined
  /** The same behind every script that got through. */
  readonly postamble?: string | undefined
  /** Texts in place of the default prompts. */
  readonly prompts?: Partial<Prompts> | undefined
  /** Characters of the functions' stubs in a prompt. Default 12,000. */
  readonly maxToolChars?: number | undefined
  /** Environment variables of the scripts, for Python tools; hidden in all that is told and kept. */
  readonly secrets?: Readonly<Record<string, string>> | undefined
  /** Further values that are hidden in the journal, by name: keys of host tools. No script gets them. */
  readonly hide?: Readonly<Record<string, string>> | undefined
  /** Where runs are kept. Default: nowhere; the record of a result is there all the same. */
  readonly journal?: JournalStore | undefined
  /** Whether the journal keeps the text of prompts, beside their digest. Default false. */
  readonly keepPrompts?: boolean | undefined
}

/** How one task is worked off. */
export interface TaskOptions<T = unknown> extends SolveDefaults {
  /** Checks the answer; a mismatch is feedback of the next attempt. Any Standard Schema (zod 4 and others). */
  readonly output?: StandardSchema<T> | undefined
  /** JSON values that become globals of every script, by value. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
  /**
   * INTERACTIVE mode: steps hand a JSON value on by `emit_intermediate("state", value)`, and have it as the global
   * `state`; this is the first.
   */
  readonly state?: unknown
  /** Of the caller, for logs and the record; default that of `withTrace`. */
  readonly traceId?: string | undefined
  readonly signal?: AbortSignal | undefined
  /** Called for each event of the journal as it is written. What it throws is not heard. */
  readonly onEvent?: ((event: JournalEvent) => void) | undefined
}

/** Names of {@link SolveDefaults}. */
export const DEFAULTS_NAMES: readonly (keyof SolveDefaults)[] = [
  'maxRetries',
  'maxSteps',
  'policy',
  'allowModules',
  'limits',
  'toolLimits',
  'budget',
  'llmTimeoutMs',
  'instructions',
  'preamble',
  'postamble',
  'prompts',
  'maxToolChars',
  'secrets',
  'hide',
  'journal',
  'keepPrompts',
]

/** Names of {@link TaskOptions}. */
export const TASK_NAMES: readonly (keyof TaskOptions)[] = [
  ...DEFAULTS_NAMES,
  'output',
  'inputs',
  'state',
  'traceId',
  'signal',
  'onEvent',
]

/** @throws TypeError naming the option when it is no whole number of at least `min`. */
export function wholeNumber(name: string, value: unknown, min: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value
  throw new TypeError(`${name}: ${String(value)} is not a whole number of at least ${min}`)
}
