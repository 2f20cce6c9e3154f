import type { AnswerCheck } from '../checkers.ts'
import type {
  CellTurn,
  CollectLimits,
  ExecutionMode,
  ExecutionResult,
  Policy,
  RunRequest,
  SessionVariable,
  StagedFile,
  Violation,
} from '../executor/index.ts'
import type { JournalEvent, JournalStore } from '../journal/index.ts'
import type { LLMCaller, Pricing } from '../llm/index.ts'
import type { ResourceLimits, Sandbox } from '../sandbox/index.ts'
import type { ApprovedRun, Reviewer } from '../review/index.ts'
import type { ScriptGenerator } from '../script/index.ts'
import type { Approver, ToolLimits, ToolSet } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import type { SolveBudget } from './budget.ts'

/** A sandbox that a script may use until it is released. */
export interface Loan {
  readonly sandbox: Sandbox
  /** The id that its run must have, if any. */
  readonly executionId?: string
  /** Present if its run is a cell of a session. */
  readonly cell?: CellTurn
  /** Lets others be served while calls of its run wait for approval, until the returned function is called. */
  park?(): () => void
  /** Never rejects. */
  release(): Promise<void>
}

/** The place where the scripts of a task are checked and run. */
export interface ScriptHost {
  readonly sandboxName: string
  /** True if files stay from script to script: in a workspace, which lends its sandbox for one script at a time. */
  readonly keepsFiles?: boolean
  /** Returns the variables that scripts find. Absent if variables do not stay from script to script. */
  variables?(): Promise<readonly SessionVariable[]>
  /** Tells once that variables were lost, in words for the model; undefined if there is nothing new. Absent as `variables` is. */
  takeLoss?(): string | undefined
  /** The size of the disk of its sandboxes in bytes, if it is known. */
  readonly diskBytes?: number
  /** Lends a sandbox. @throws SandglassError if there is none. */
  checkout(signal: AbortSignal): Promise<Loan>
  /** Returns the approver of a run. Without it, calls that need approval are denied. */
  approverOf?(run: ApprovedRun): Approver
  /** Checks a script without a lease. @throws SandglassError if the machinery fails. */
  check(script: string, given: AnswerCheckRequest): Promise<AnswerCheck>
  /**
   * Returns the host for a script that names packages itself, or the violation if it cannot have them. Absent if scripts cannot name any.
   * @throws SandglassError if the machinery fails.
   */
  forScript?(script: string, signal: AbortSignal): Promise<ScriptHost | Violation>
  /** The packages that its scripts can import, as `name==version`. */
  readonly dependencies?: readonly string[]
  /** Called after each script that ran, with the modules that it loaded. */
  noteRun?(
    run: { readonly script: string; readonly imported: readonly string[] },
    result: Pick<ExecutionResult, 'errorKind'>,
  ): void
  /** Returns a sentence that helps after an error about packages. */
  explain?(error: string, script: string): string | undefined
}

/** The request of a check. */
export interface AnswerCheckRequest {
  /** `off` only decides whether `whole` is the script. */
  readonly policy: Policy
  /** The answer in which the script was found, if that may be Python itself. */
  readonly whole?: string
  readonly mode: ExecutionMode
  readonly tools: ToolSet | undefined
  readonly inputs: Readonly<Record<string, unknown>>
  /** Only the paths count. */
  readonly files: Readonly<Record<string, unknown>> | undefined
  readonly collect: readonly string[]
  readonly keepsFiles: boolean
  readonly allowModules: readonly string[]
  readonly preamble: string
  readonly postamble: string
  readonly listTools: boolean
  readonly signal: AbortSignal
}

/** One task with all its options resolved. */
export interface Job<T = unknown> {
  readonly task: string
  readonly mode: ExecutionMode
  readonly host: ScriptHost
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
  readonly maxRepetitions: number
  readonly review: Reviewer | undefined
  readonly budget: SolveBudget
  readonly pricing: Pricing
  readonly inputs: Readonly<Record<string, unknown>>
  /** The same files as `files`, checked; their content was not read. */
  readonly stagedFiles: readonly StagedFile[]
  /** The files of every script. */
  readonly files: NonNullable<RunRequest['files']> | undefined
  /** Globs of the files that every script leaves. */
  readonly collect: readonly string[]
  readonly collectLimits: CollectLimits | undefined
  readonly secrets: Readonly<Record<string, string>>
  /** Further values that are redacted everywhere; no script gets them. */
  readonly hide: Readonly<Record<string, string>>
  readonly output: StandardSchema<T> | undefined
  /** The first value of `state`, if steps pass a state on. */
  readonly state: { readonly initial: unknown } | undefined
  readonly journal: JournalStore
  readonly keepPrompts: boolean
  readonly traceId: string | null
  readonly signal: AbortSignal | undefined
  readonly onEvent: ((event: JournalEvent) => void) | undefined
  /** Called for each file that a script left, when it has arrived. */
  readonly onFile?: (file: { readonly path: string; readonly size: number }) => void
}
