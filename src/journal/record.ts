import type { Violation } from '../executor/index.ts'
import type { AttemptStatus, CellFacts, FileFacts, Repetition } from './events.ts'
import type { TaskStatus } from '../outcomes/index.ts'

/** One call of a host tool. */
export interface ToolCallRecord {
  /** Call site and ordinal: `L12#3` is the third call of this tool in line 12. */
  readonly key: string
  readonly line: number | null
  readonly name: string
  readonly effect: string | null
  readonly args: unknown
  /** Null while the call has no answer. */
  readonly ok: boolean | null
  readonly ms: number | null
  /** JSON text, or its head if it is long. */
  readonly resultJson: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  /** Absent for a call that needed no approval. */
  readonly approval?: {
    /** Null while nobody has decided; then the fields below are null, too. */
    readonly approved: boolean | null
    readonly reason: string | null
    readonly by: string | null
    /** The arguments with which the tool executed in place of `args`, or null. */
    readonly args: unknown
    /** ISO 8601, UTC. */
    readonly decidedAt: string | null
    readonly waitedMs: number | null
  }
}

/** The model call behind a script, with its cost. */
export interface GenerationRecord {
  readonly model: string | null
  readonly promptTokens: number | null
  /** Of these, the tokens from the provider's cache. */
  readonly cachedPromptTokens: number | null
  readonly completionTokens: number | null
  readonly latencyMs: number
  /** The head of an answer without a script. */
  readonly answer: string | null
}

/** The sandbox that ran a script, with the limits in force there. */
export interface SandboxRecord {
  readonly id: string
  readonly engine: string
  readonly level: string
  readonly python: string
  /** The number of scripts that it had run, this one included. */
  readonly use: number
  readonly limitsEnforced: readonly string[]
  readonly network: string
}

/** A script that was proposed to a reviewer, and the answer. */
export interface ReviewRecord {
  readonly proposalId: string
  readonly plan: string
  readonly script: string
  /** The digest of the script; null if it holds a secret. */
  readonly sha256: string | null
  readonly dependencies: readonly string[]
  readonly tools: readonly { readonly name: string; readonly effect: string | null }[]
  readonly sandbox: Omit<SandboxRecord, 'id' | 'use'>
  /** The mistakes of the script in the last decision, or null. */
  readonly problem: string | null
  /** ISO 8601, UTC. */
  readonly proposedAt: string
  /** Null while nobody has decided. */
  readonly decision: {
    readonly decision: string
    readonly by: string | null
    /** The message to the model, or null. */
    readonly text: string | null
    /** The script of the reviewer, or null. */
    readonly script: string | null
    readonly decidedAt: string
    readonly waitedMs: number
  } | null
}

/** One attempt: the model call, the script and its outcome. */
export interface AttemptRecord {
  /** From 1, within its task or its step. */
  readonly number: number
  /** Null while the attempt has no end. */
  readonly status: AttemptStatus | null
  readonly error: string | null
  readonly traceback: string | null
  readonly prompt: { readonly digest: string; readonly chars: number; readonly text: string | null } | null
  readonly generation: GenerationRecord | null
  /** The cost of the model call by `pricing`; null if unknown. */
  readonly cost: number | null
  /** The script of the model, or of the reviewer who replaced it. */
  readonly script: string | null
  /** The proposals to a reviewer and the decisions; empty if there is none. */
  readonly reviews: readonly ReviewRecord[]
  readonly violations: readonly Violation[]
  readonly hasResult: boolean
  readonly finalData: unknown
  readonly intermediates: readonly { readonly label: string; readonly data: unknown }[]
  /** The values that the script showed, by MIME type. The journal leaves out large parts. */
  readonly displays: readonly { readonly data: Readonly<Record<string, string>>; readonly leftOut: readonly string[] }[]
  readonly logs: readonly { readonly level: string; readonly message: string }[]
  readonly toolCalls: readonly ToolCallRecord[]
  readonly stdout: string
  readonly stderr: string
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
  /** The files that `collect` matched, without their content. */
  readonly files: readonly FileFacts[]
  /** Absent unless the script ran as a cell of a session. */
  readonly cell?: CellFacts
  /** Null if the script did not run. */
  readonly sandbox: SandboxRecord | null
  /** The time of the script alone, in milliseconds. */
  readonly executionMs: number | null
  readonly durationMs: number | null
  readonly repetition: Repetition | null
  /** The reason that the script ran a second time after its sandbox was lost, or null. `toolCalls` and `logs` are those of both runs. */
  readonly rerun: string | null
}

/** A step of INTERACTIVE mode. */
export interface StepRecord {
  /** From 1. */
  readonly number: number
  /** True if the step had to output the answer. */
  readonly forceFinish: boolean
  readonly ok: boolean | null
  readonly error: string | null
  readonly attempts: readonly AttemptRecord[]
}

/** Everything about one task: a view of its journal. */
export interface RunRecord {
  readonly runId: string
  readonly traceId: string | null
  readonly task: string
  readonly mode: 'plan' | 'interactive'
  readonly sandboxName: string
  readonly policy: string
  readonly tools: readonly string[]
  readonly maxRetries: number
  readonly maxSteps: number | null
  /** The budgets; null for a budget without a limit. */
  readonly budget: {
    readonly tokens: number | null
    readonly toolCalls: number | null
    readonly wallMs: number | null
    readonly cost: number | null
  }
  readonly status: TaskStatus
  readonly success: boolean
  readonly error: string | null
  readonly finalData: unknown
  /** The best data of a task that ended without an answer. */
  readonly partial: unknown
  /** The attempts in PLAN mode. */
  readonly attempts: readonly AttemptRecord[]
  /** The steps in INTERACTIVE mode. */
  readonly steps: readonly StepRecord[]
  readonly models: readonly string[]
  readonly totalPromptTokens: number
  readonly totalCompletionTokens: number
  /** The cost of all model calls by `pricing`; null if one price is unknown. */
  readonly cost: number | null
  readonly totalToolCalls: number
  /** ISO 8601, UTC. */
  readonly startedAt: string
  /** For a task without an end: the time until its last event. */
  readonly durationMs: number
  /** The traceback of the newest attempt that has one, or null. */
  lastTraceback(): string | null
}
