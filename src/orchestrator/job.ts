import type { CheckResult } from '../checkers.ts'
import type { ExecutionMode, Policy } from '../executor/index.ts'
import type { JournalEvent, JournalStore } from '../journal/index.ts'
import type { LLMCaller } from '../llm/index.ts'
import type { Lease } from '../pool/index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import type { ScriptGenerator } from '../script/index.ts'
import type { ToolLimits, ToolSet } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import type { SolveBudget } from './budget.ts'

/** Where scripts of a job are checked and run. */
export interface Ground {
  readonly sandboxName: string
  /** @throws SandglassError when there is no sandbox. */
  checkout(signal: AbortSignal): Promise<Lease>
  /** Looks for mistakes without a lease. @throws SandglassError when the machinery fails. */
  check(script: string, given: CheckGiven): Promise<CheckResult>
}

/** What a check is told. */
export interface CheckGiven {
  readonly policy: Exclude<Policy, 'off'>
  readonly mode: ExecutionMode
  readonly tools: ToolSet | undefined
  readonly inputs: Readonly<Record<string, unknown>>
  readonly allowModules: readonly string[]
  readonly preamble: string
  readonly postamble: string
  readonly signal: AbortSignal
}

/** One task with everything decided. */
export interface Job<T = unknown> {
  readonly task: string
  readonly mode: ExecutionMode
  readonly ground: Ground
  readonly generator: ScriptGenerator
  readonly llmCall: LLMCaller
  readonly llmTimeoutMs: number
  readonly tools: ToolSet | undefined
  readonly toolLimits: ToolLimits
  readonly policy: Policy
  readonly allowModules: readonly string[]
  readonly limits: ResourceLimits
  readonly maxRetries: number
  readonly maxSteps: number
  readonly budget: SolveBudget
  readonly inputs: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, string>>
  /** Hidden in the journal beside `secrets`, and given to no script. */
  readonly hide: Readonly<Record<string, string>>
  readonly output: StandardSchema<T> | undefined
  /** The first value of `state`, where steps hand one on. */
  readonly state: { readonly initial: unknown } | undefined
  readonly journal: JournalStore
  readonly keepPrompts: boolean
  readonly traceId: string | null
  readonly signal: AbortSignal | undefined
  readonly onEvent: ((event: JournalEvent) => void) | undefined
}
