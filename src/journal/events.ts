import type { Violation } from '../executor/index.ts'
import type { ExecutionStatus, TaskStatus } from '../outcomes/index.ts'

/** The status of an attempt: that of its script, or the reason why no script ran. */
export type AttemptStatus =
  | ExecutionStatus
  /** The answer held no script. */
  | 'no-script'
  /** A step emitted nothing. */
  | 'no-data'
  /** The reviewer did not accept the script. */
  | 'not-accepted'
  /** The model failed or did not answer. */
  | 'model-failed'
  /** A sandbox or the journal failed. */
  | 'infrastructure'

/** The budgets of a task. */
export type BudgetName = 'tokens' | 'tool_calls' | 'wall_ms' | 'cost'

/** The kinds of repetition. */
export type Repetition = 'same-result' | 'same-script' | 'same-error' | 'cycle'

/** A sandbox in the journal. */
export interface JournalSandbox {
  readonly id: string
  readonly engine: string
  readonly level: string
  readonly python: string
  readonly use: number
  readonly limits_enforced: readonly string[]
  readonly network: string
}

/** A file that a script left, without its content. */
export interface FileFacts {
  readonly path: string
  readonly size: number
  /** Null for a file that holds a secret of its run, because a short secret could be guessed from the digest. */
  readonly sha256: string | null
}

/** A script that was a cell of a session: its number in the session, and the state after it. */
export interface CellFacts {
  readonly number: number
  readonly state: 'kept' | 'rolled-back' | 'lost'
}

/** The place of an event in a task: `step` is null in PLAN mode. Both count from 1; attempts within their step. */
export interface Place {
  readonly step: number | null
  readonly attempt: number
}

/** The content of an event, without its time and place in the journal. */
export type JournalBody =
  | {
      readonly type: 'run_started'
      readonly task: string
      readonly mode: 'plan' | 'interactive'
      readonly sandbox_name: string
      readonly policy: string
      readonly trace_id: string | null
      readonly tools: readonly string[]
      readonly tools_digest: string | null
      readonly max_retries: number
      readonly max_steps: number | null
      /** `cost` is absent in journals of versions that did not have it. */
      readonly budget: Readonly<Record<Exclude<BudgetName, 'cost'>, number | null> & { cost?: number | null }>
    }
  | { readonly type: 'step_started'; readonly step: number; readonly force_finish: boolean }
  | (Place & {
      readonly type: 'prompt_written'
      readonly digest: string
      readonly chars: number
      /** Null unless the journal keeps prompts. */
      readonly text: string | null
    })
  | (Place & {
      readonly type: 'script_generated'
      readonly model: string | null
      readonly prompt_tokens: number | null
      readonly completion_tokens: number | null
      /** Absent in journals of earlier versions, like `cost`; null if unknown. */
      readonly cached_prompt_tokens?: number | null
      readonly cost?: number | null
      readonly latency_ms: number
      readonly answer_chars: number
      readonly script: string | null
      readonly script_digest: string | null
      /** The head of an answer without a script. */
      readonly answer: string | null
    })
  | (Place & {
      readonly type: 'script_checked'
      readonly policy: string
      readonly ok: boolean
      readonly violations: readonly Violation[]
      readonly ms: number
    })
  /** A script waits for the decision of a reviewer. */
  | (Place & {
      readonly type: 'script_proposed'
      readonly proposal_id: string
      readonly plan: string
      readonly script: string
      /** The digest of the script; null if it holds a secret, which could be guessed from the digest. */
      readonly sha256: string | null
      readonly dependencies: readonly string[]
      readonly tools: readonly { readonly name: string; readonly effect: string | null }[]
      readonly sandbox: Omit<JournalSandbox, 'id' | 'use'>
      /** The mistakes of the script in the last decision, or null. */
      readonly problem: string | null
    })
  | (Place & {
      readonly type: 'proposal_decided'
      readonly proposal_id: string
      readonly decision: string
      readonly by: string | null
      /** The message to the model, or null. */
      readonly text: string | null
      /** The script of the reviewer, or null. It runs if it has no mistakes. */
      readonly script: string | null
      readonly waited_ms: number
    })
  | (Place & { readonly type: 'sandbox_assigned'; readonly sandbox_id: string; readonly engine: string })
  /** The sandbox was lost; the same script runs once more in another sandbox. */
  | (Place & { readonly type: 'script_rerun'; readonly reason: string })
  | (Place & {
      readonly type: 'tool_called'
      /** Call site and ordinal: `L12#3` is the third call of this tool in line 12. */
      readonly key: string
      readonly line: number | null
      readonly name: string
      readonly effect: string | null
      /** With sorted keys. */
      readonly args: unknown
    })
  | (Place & {
      readonly type: 'tool_answered'
      readonly key: string
      readonly name: string
      readonly ok: boolean
      readonly ms: number
      /** JSON text, or its head if it is long; null for a failure. */
      readonly result_json: string | null
      readonly result_chars: number
      readonly error: { readonly code: string; readonly message: string } | null
    })
  /** A call waits for approval. If no `approval_decided` follows, the script ended first. */
  | (Place & {
      readonly type: 'approval_requested'
      readonly approval_id: string
      readonly key: string
      readonly name: string
      readonly effect: string | null
      readonly args: unknown
    })
  | (Place & {
      readonly type: 'approval_decided'
      readonly approval_id: string
      readonly key: string
      readonly name: string
      readonly approved: boolean
      /** Null if it was approved. */
      readonly reason: string | null
      readonly by: string | null
      /** The arguments in place of those of the script, or null. */
      readonly args: unknown
      readonly waited_ms: number
    })
  | (Place & { readonly type: 'intermediate'; readonly label: string; readonly data: unknown })
  /** The script showed a value. Parts beyond the bounds of a journal are named in `left_out`. */
  | (Place & {
      readonly type: 'display'
      readonly data: Readonly<Record<string, string>>
      readonly left_out: readonly string[]
    })
  | (Place & { readonly type: 'log'; readonly level: string; readonly message: string })
  | (Place & {
      readonly type: 'script_executed'
      readonly status: string
      readonly error_kind: string | null
      readonly error: string | null
      readonly traceback: string | null
      readonly has_result: boolean
      readonly final_data: unknown
      readonly stdout: string
      readonly stderr: string
      readonly warnings: readonly { readonly code: string; readonly message: string }[]
      /** The files without their content; absent in journals of earlier versions. */
      readonly files?: readonly FileFacts[]
      /** Absent unless the script was a cell of a session. */
      readonly cell?: CellFacts
      readonly tool_calls: number
      readonly duration_ms: number
      readonly sandbox: JournalSandbox
      readonly ending: { readonly cause: string; readonly exit_code: number | null; readonly signal: string | null }
    })
  | (Place & {
      readonly type: 'attempt_ended'
      readonly status: AttemptStatus
      readonly error: string | null
      readonly repetition: Repetition | null
      readonly duration_ms: number
    })
  | (Place & { readonly type: 'stagnation_found'; readonly repetition: Repetition })
  | { readonly type: 'step_ended'; readonly step: number; readonly ok: boolean; readonly error: string | null }
  | {
      readonly type: 'run_ended'
      readonly status: TaskStatus
      readonly error: string | null
      readonly final_data: unknown
      readonly partial: unknown
      readonly prompt_tokens: number
      readonly completion_tokens: number
      readonly cost?: number | null
      readonly tool_calls: number
      readonly duration_ms: number
    }

/** The version of {@link JournalEvent}. */
export const JOURNAL_VERSION = 1

/** One line of a journal, as it is stored. */
export type JournalEvent = JournalBody & {
  readonly v: typeof JOURNAL_VERSION
  readonly run_id: string
  /** From 0, without gaps. */
  readonly seq: number
  /** ISO 8601, UTC. */
  readonly at: string
}
