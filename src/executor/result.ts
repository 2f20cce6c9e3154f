import type { EffectMark, RunTools } from './tool-port.ts'
import type { Ending, EnforcedLimit, IsolationLevel, NetworkAccess } from '../sandbox/index.ts'

/** PLAN needs a result; INTERACTIVE may end without one (mission: script executor). */
export const ExecutionMode = { PLAN: 'plan', INTERACTIVE: 'interactive' } as const
/** One of {@link ExecutionMode}. */
export type ExecutionMode = (typeof ExecutionMode)[keyof typeof ExecutionMode]

/** What became of a run. */
export type ExecutionStatus =
  | 'completed'
  | 'step-done'
  | 'failed'
  | 'crashed'
  | 'rejected'
  | 'timed-out'
  | 'output-limit'
  | 'memory-limit'
  | 'sandbox-lost'
  | 'cancelled'

/** Coarse reason of a failure, for programs; null when there was none. */
export type ErrorKind =
  | 'error'
  | 'crash'
  | 'invalid_request'
  | 'validation'
  | 'timeout'
  | 'oom'
  | 'output_limit'
  | 'infrastructure'
  | 'cancelled'
  | 'internal'

/**
 * Something worth knowing that does not change the outcome. Codes of the host: `second_result`, `result_after_error`,
 * `error_after_result`, `second_error`; `timeout`, `crash`, `output_limit`, `memory_limit`, `cancelled`,
 * `not_started`, `channel_closed`, `channel_violation` for what came after the outcome was decided; `callback_failed`,
 * `secret_too_short`, `secret_in_file`, `file_incomplete`, `cpu_limit_lost`, `destroy_failed`, `tool_calls_left_out`,
 * `tool_calls_unanswered`; `tool_not_loaded` and
 * `preload_failed` for what the sandbox could not load when it started. The harness adds its own.
 */
export interface RunWarning {
  readonly code: string
  readonly message: string
  readonly traceback: string | null
}

/** A file that the run left in the workspace and that `collect` matched. */
export interface CollectedFile {
  /** Relative to the workspace, `/` between the parts. */
  readonly path: string
  readonly size: number
  readonly sha256: string
  readonly content: Uint8Array
}

/** A call of a host tool; calls of Python tools stay in the script's process. Secrets are redacted. */
export interface ToolCall {
  readonly name: string
  /** What the tool says that a call may change; null where there is no such tool. */
  readonly effect: EffectMark | null
  /** As the script gave them; large ones are left out, and it says so in their place. */
  readonly args: unknown
  readonly ok: boolean
  /** From the call's arrival at the host to its answer, in milliseconds. */
  readonly ms: number
  /** What the script was told when it failed. */
  readonly error: { readonly code: string; readonly message: string } | null
}

/** Something wrong with a script, found before anything of it ran. */
export interface Violation {
  /** One of the codes of docs/checking.md. */
  readonly code: string
  /** From 1. */
  readonly line: number
  /** From 0, in characters. */
  readonly column: number
  readonly message: string
  /** What to write instead, in words for a language model. */
  readonly hint: string
}

/** Which sandbox served a run, and what was in force there. */
export interface ServedBy {
  readonly id: string
  readonly engine: string
  readonly level: IsolationLevel
  readonly python: string
  /** How many scripts this sandbox had run, this one included; 0 when the sandbox did not get to say it. */
  readonly use: number
  readonly limitsEnforced: readonly EnforcedLimit[]
  readonly network: NetworkAccess
}

/** The comprehensive outcome of one run (mission: ExecutionResult; requirement EX-04). */
export interface ExecutionResult<T = unknown> {
  readonly status: ExecutionStatus
  /** True only if the script called `emit_result`. */
  readonly success: boolean
  readonly errorKind: ErrorKind | null
  readonly executionId: string
  readonly hasResult: boolean
  readonly finalData: T | null
  readonly intermediates: readonly { readonly label: string; readonly data: unknown }[]
  readonly logs: readonly { readonly level: string; readonly message: string }[]
  readonly error: string | null
  /** Only after a crash of the script. */
  readonly traceback: string | null
  readonly warnings: readonly RunWarning[]
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: number
  readonly stderrBytes: number
  /**
   * What counted towards `maxOutputBytes`: of stdout and stderr the text in UTF-8, of every other frame but those of
   * files its whole line. The same for the same output, whatever the timing.
   */
  readonly outputBytes: number
  /** Whether `stdout` or `stderr` above is shorter than what the script wrote. */
  readonly truncated: boolean
  readonly ending: Ending
  readonly durationMs: number
  readonly sandbox: ServedBy
  /** Lines from the sandbox that were no frame of this run. */
  readonly ignoredFrames: number
  /** Which caps of `collect` were reached: `max_files`, `max_file_bytes`, `max_total_bytes`, `max_entries`, `max_time`. */
  readonly limitsHit: readonly string[]
  readonly files: readonly CollectedFile[]
  /** Calls of host tools in the order in which they ended, at most 1,000 of them. */
  readonly toolCalls: readonly ToolCall[]
  /** What a check found wrong, when it was asked for; then nothing ran (status `rejected`). */
  readonly violations: readonly Violation[]
  /** What a callback of the caller threw, as it was thrown (not redacted); absent when none did (EX-12). */
  readonly cause?: unknown
}

/** What a run tells while it runs. Secrets are redacted. */
export type RunEvent<T = unknown> =
  | { readonly type: 'started'; readonly executionId: string; readonly sandboxId: string }
  | { readonly type: 'intermediate'; readonly executionId: string; readonly label: string; readonly data: unknown }
  | { readonly type: 'log'; readonly executionId: string; readonly level: string; readonly message: string }
  | { readonly type: 'stdout'; readonly executionId: string; readonly text: string }
  | { readonly type: 'stderr'; readonly executionId: string; readonly text: string }
  | {
      readonly type: 'error'
      readonly executionId: string
      readonly message: string
      readonly traceback: string | null
    }
  | { readonly type: 'final_result'; readonly executionId: string; readonly data: unknown }
  | {
      readonly type: 'tool_call'
      readonly executionId: string
      readonly callId: string
      readonly name: string
      readonly effect: EffectMark | null
      readonly args: unknown
      /** Of the script, from 1; null where it is not known. */
      readonly line: number | null
    }
  | {
      readonly type: 'tool_result'
      readonly executionId: string
      readonly callId: string
      readonly name: string
      readonly ok: boolean
      readonly ms: number
      readonly error: { readonly code: string; readonly message: string } | null
      /** What the script was given, as JSON text without secrets; null for a failure. */
      readonly resultJson: string | null
    }
  | { readonly type: 'result'; readonly executionId: string; readonly result: ExecutionResult<T> }

/** A file to put into the workspace before a script starts. */
export interface InputFile {
  readonly content: Uint8Array | string
  /** POSIX permission bits, default 0o644. */
  readonly mode?: number
}

/** One script to run in one checked-out sandbox (requirement EX-01). */
export interface RunRequest {
  readonly script: string
  /** Generated when absent; echoed on every event and on the result. Not empty, at most 256 characters. */
  readonly executionId?: string
  /** Names that must be among `secrets`, checked before anything runs (HA-08). */
  readonly requiredSecrets?: readonly string[]
  /** Environment variables of this run only; redacted wherever they would come out. */
  readonly secrets?: Readonly<Record<string, string>>
  /** JSON values that become globals of the script, by value. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** Files for the workspace, by path relative to it. */
  readonly files?: Readonly<Record<string, Uint8Array | string | InputFile>>
  /** Globs of files to bring back: `*`, `?`, `[…]` and `**`. */
  readonly collect?: readonly string[]
  /** What the script may call on the host. */
  readonly tools?: RunTools
  /**
   * Python that is run before the script, in the same globals: imports, helpers. A text of its own, so that the script
   * keeps its line numbers (OR-12). Trusted: no policy looks at it.
   */
  readonly preamble?: string
  /** The same behind a script that got through. */
  readonly postamble?: string
  readonly signal?: AbortSignal
}
