import type { CollectLimits, Policy, RunRequest } from '../executor/index.ts'
import type { JournalEvent, JournalStore } from '../journal/index.ts'
import type { Pricing } from '../llm/index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import type { Reviewer } from '../review/index.ts'
import type { Prompts } from '../script/index.ts'
import type { ToolLimits } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import type { SolveBudget } from './budget.ts'

/** Default options of tasks; each task can override them. */
export interface SolveDefaults {
  /** Maximum number of attempts after the first: per task in PLAN mode, per step in INTERACTIVE mode. Default 3. */
  readonly maxRetries?: number | undefined
  /** Steps in INTERACTIVE mode. Default 10. */
  readonly maxSteps?: number | undefined
  /**
   * INTERACTIVE mode: maximum number of consecutive steps or attempts that repeat an earlier one. After them, one final step follows,
   * which has no tools and must answer. The model is warned after each repetition. Default 2.
   */
  readonly maxRepetitions?: number | undefined
  /** The policy of the check before a script runs. Default `strict`. */
  readonly policy?: Policy | undefined
  /** Modules that scripts may import in addition to those of `strict`. */
  readonly allowModules?: readonly string[] | undefined
  /** Timeout and output limit of each script. */
  readonly limits?: ResourceLimits | undefined
  /** Maximum number of tool calls of one script, and of concurrent calls. */
  readonly toolLimits?: ToolLimits | undefined
  /**
   * Decides about each script that passed the check; a script that it does not accept does not run. A refusal is feedback
   * for the next attempt. The time of the review counts towards `budget.wallMs` only. Default: no review.
   */
  readonly review?: Reviewer | undefined
  /** The limits on the cost of a task. Default: none. */
  readonly budget?: SolveBudget | undefined
  /** The prices of the models, for the cost of each attempt and of the task. Default: none; the cost is then null. */
  readonly pricing?: Pricing | undefined
  /** The maximum time of one answer of the model, in milliseconds. Default 120,000. */
  readonly llmTimeoutMs?: number | undefined
  /** Text of the prompt that precedes the descriptions of the functions. */
  readonly instructions?: string | undefined
  /** Python that is run before every script, in its globals; trusted, and shown to the model. */
  readonly preamble?: string | undefined
  /** Python that runs after every script that did not fail. */
  readonly postamble?: string | undefined
  /** Replacements for the default prompts. */
  readonly prompts?: Partial<Prompts> | undefined
  /** Maximum characters of the functions' stubs in a prompt. Default 12,000. */
  readonly maxToolChars?: number | undefined
  /** Maximum characters of the data of earlier steps in a prompt of INTERACTIVE mode. Default 24,000. */
  readonly maxHistoryChars?: number | undefined
  /** Environment variables of the scripts, for Python tools; redacted everywhere. */
  readonly secrets?: Readonly<Record<string, string>> | undefined
  /** Further values to redact everywhere, by name, such as keys of host tools. No script gets them. */
  readonly hide?: Readonly<Record<string, string>> | undefined
  /** The store of the events. Default: none; the result still has its record. */
  readonly journal?: JournalStore | undefined
  /** True if the journal keeps the text of prompts, not only their digest. Default false. */
  readonly keepPrompts?: boolean | undefined
}

/** Options of one task. */
export interface TaskOptions<T = unknown> extends SolveDefaults {
  /** A schema of the answer; a mismatch becomes feedback for the next attempt. Any Standard Schema (zod 4 and others). */
  readonly output?: StandardSchema<T> | undefined
  /** JSON values that become globals of every script, by value. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
  /** Files that every script finds, by path; the prompt lists them. */
  readonly files?: RunRequest['files'] | undefined
  /** Globs of the files to collect from the scripts into `files` of the result. The prompt names the globs. */
  readonly collect?: readonly string[] | undefined
  /** Limits of the files that are collected from each script; files beyond them are left out. */
  readonly collectLimits?: CollectLimits | undefined
  /**
   * INTERACTIVE mode: steps pass a JSON value on by `emit_intermediate("state", value)`, and find it in the global
   * `state`; this option is the first value.
   */
  readonly state?: unknown
  /** A trace id for logs and the record. Default: that of `withTrace`. */
  readonly traceId?: string | undefined
  /** Cancels the task. */
  readonly signal?: AbortSignal | undefined
  /** Called for each event of the journal. Its errors are ignored. */
  readonly onEvent?: ((event: JournalEvent) => void) | undefined
}

/** Names of {@link SolveDefaults}. */
export const DEFAULTS_NAMES: readonly (keyof SolveDefaults)[] = [
  'maxRetries',
  'maxSteps',
  'maxRepetitions',
  'policy',
  'allowModules',
  'limits',
  'toolLimits',
  'review',
  'budget',
  'pricing',
  'llmTimeoutMs',
  'instructions',
  'preamble',
  'postamble',
  'prompts',
  'maxToolChars',
  'maxHistoryChars',
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
  'files',
  'collect',
  'collectLimits',
  'state',
  'traceId',
  'signal',
  'onEvent',
]

/** Returns the value of an option. @throws TypeError naming the option if it is not a whole number of at least `min`. */
export function checkWholeNumber(name: string, value: unknown, min: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value
  throw new TypeError(`${name}: ${String(value)} is not a whole number of at least ${min}`)
}
