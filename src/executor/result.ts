import type { EffectMark, RunTools } from './tool-port.ts'
import type { CheckpointOnWire } from '../protocol/index.ts'
import type { ErrorKind, ExecutionStatus, WarningCode } from '../outcomes/index.ts'
import type { Ending, EnforcedLimit, IsolationLevel, NetworkAccess } from '../sandbox/index.ts'

/** PLAN needs a result; INTERACTIVE may end without one. */
export const ExecutionMode = { PLAN: 'plan', INTERACTIVE: 'interactive' } as const
/** One of {@link ExecutionMode}. */
export type ExecutionMode = (typeof ExecutionMode)[keyof typeof ExecutionMode]

/** A warning: it does not change the outcome. */
export interface RunWarning {
  /** One of the codes of docs/cli.md. Later versions may add codes. */
  readonly code: WarningCode
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
  /** Present if the content holds the value of a secret, which is not redacted in files. */
  readonly holdsSecret?: true
}

/** Limits of the files that a run collects. They are held in memory; the search for them ends after 5 s. */
export interface CollectLimits {
  /** Number of files, at most 100,000. Default 100. */
  readonly maxFiles?: number
  /** Bytes of a file, at most 2 GiB. Default 4 MiB. */
  readonly maxFileBytes?: number
  /** Bytes of all files together, at most 2 GiB. Default 64 MiB. */
  readonly maxTotalBytes?: number
}

/** A value that the script showed: by `display`, by `plt.show()` and the like, or as the last expression of a cell. */
export interface Display {
  readonly kind: 'result' | 'display'
  /** By MIME type: `text/*`, JSON, XML and JavaScript as text, anything else in base64. Without secrets. From the script: not trusted. */
  readonly data: Readonly<Record<string, string>>
  /** MIME types whose content could not be made, was too large, or held the value of a secret; in quotes, names that are no MIME types. */
  readonly leftOut: readonly string[]
  /** Its place: the bytes of stdout before it. On the engine `pyodide` an estimate. */
  readonly after: { readonly stdout: number }
}

/** A call of a host tool; calls of Python tools stay in the script's process. Secrets are redacted. */
export interface ToolCall {
  readonly name: string
  /** The effect that the tool declares; null if there is no such tool. */
  readonly effect: EffectMark | null
  /** The arguments that the script gave; a note replaces large ones. */
  readonly args: unknown
  /**
   * `failed`: the script got a ToolError. `unanswered`: the run ended first; effects of the tool are not undone.
   */
  readonly state: 'answered' | 'failed' | 'unanswered'
  readonly ok: boolean
  /** From the call's arrival at the host to its answer, or to the end of the run, in milliseconds. */
  readonly ms: number
  /** The failure that the script got; without an answer the code `cancelled`, or, if the tool had not been called, `not_called` or `approval_pending`. */
  readonly error: { readonly code: string; readonly message: string } | null
}

/** The packages that a run could import, because it or its caller declared them. */
export interface RunEnvironment {
  /** The digest of its content, as `sandglass env list` shows it. */
  readonly key: string
  /** Version by name. */
  readonly packages: Readonly<Record<string, string>>
  /** False if this call installed it. */
  readonly cached: boolean
  /** The time until it was ready, in milliseconds. */
  readonly ms: number
}

/** A mistake in a script, found before any of it ran. */
export interface Violation {
  /** One of the codes of docs/checking.md. */
  readonly code: string
  /** From 1. */
  readonly line: number
  /** From 0, in characters. */
  readonly column: number
  readonly message: string
  /** A hint for a language model: the code to write instead. */
  readonly hint: string
}

/** The sandbox that served a run, and the protection in force there. */
export interface ServedBy {
  readonly id: string
  readonly engine: string
  readonly level: IsolationLevel
  readonly python: string
  /** The number of scripts that this sandbox had run, this one included; 0 if the sandbox could not report it. */
  readonly use: number
  readonly limitsEnforced: readonly EnforcedLimit[]
  readonly network: NetworkAccess
}

/** The complete outcome of one run. `success` tells whether there is a result: it narrows `finalData`. */
export type ExecutionResult<T = unknown> = RunFacts & (WithResult<T> | WithoutResult)

interface WithResult<T> {
  /** True only if the script called `emit_result`. */
  readonly success: true
  readonly hasResult: true
  readonly finalData: T
}

interface WithoutResult {
  readonly success: false
  /** True if the script emitted a result that does not match `output`. */
  readonly hasResult: boolean
  readonly finalData: null
}

interface RunFacts {
  readonly status: ExecutionStatus
  readonly errorKind: ErrorKind | null
  readonly executionId: string
  readonly intermediates: readonly { readonly label: string; readonly data: unknown }[]
  readonly logs: readonly { readonly level: string; readonly message: string }[]
  readonly error: string | null
  /**
   * True if the caller's part failed and not the script: a secret is missing, a Python tool or a preloaded module
   * cannot be loaded, or the preamble raised, ended the process or did not end in time. No part of the script ran.
   */
  readonly setupFailed: boolean
  /** Only after a crash of the script. */
  readonly traceback: string | null
  readonly warnings: readonly RunWarning[]
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: number
  readonly stderrBytes: number
  /**
   * The bytes that counted towards `maxOutputBytes`: the text of stdout and stderr in UTF-8, and the whole lines of all other
   * frames except those of files. The same for the same output, whatever the timing.
   */
  readonly outputBytes: number
  /** True if `stdout` or `stderr` above is shorter than the script's output. */
  readonly truncated: boolean
  readonly ending: Ending
  readonly durationMs: number
  readonly sandbox: ServedBy
  /** The packages of `dependencies`; null without any. */
  readonly environment: RunEnvironment | null
  /** Lines from the sandbox that were not frames of this run. */
  readonly ignoredFrames: number
  /** The caps of `collect` that were reached: `max_files`, `max_file_bytes`, `max_total_bytes`, `max_entries`, `max_time`. */
  readonly limitsHit: readonly string[]
  readonly files: readonly CollectedFile[]
  /** The values that the script showed, in order: at most 100, 16 MiB together. `maxOutputBytes` does not count them. */
  readonly displays: readonly Display[]
  /** Calls of host tools in the order in which they ended, then those without an answer; at most 1,000 of them. */
  readonly toolCalls: readonly ToolCall[]
  /** The violations, if the request was a check; then nothing ran (status `rejected`). */
  readonly violations: readonly Violation[]
  /** The value that a callback of the caller threw (not redacted); absent if none did. */
  readonly cause?: unknown
}

/** The content of a checkpoint of a session: everything, all but what `lacks` names, or nothing, for the reasons in `lacks`. */
export type CheckpointState = Readonly<CheckpointOnWire>

/** The end of a cell for its session; the result of its run is separate. Texts are redacted. */
export interface CellEnd {
  /** The value of its last expression; null if it has none, or if it is not JSON. */
  readonly value: unknown
  readonly state: 'kept' | 'rolled-back' | 'lost'
  /** The checkpoint of the state that the next cell finds. */
  readonly checkpoint: CheckpointState
  /** Descriptions of the parts of the state that the rollback could not restore. */
  readonly missing: readonly string[]
  /** Names of the processes that the rollback ended. */
  readonly ended: readonly string[]
}

/** A variable of a session. */
export interface SessionVariable {
  readonly name: string
  readonly type: string
  /** The shape of an array or a table, the length of another container; null for anything else. */
  readonly shape: readonly number[] | null
  /** Bytes of memory of the value, without the objects that it refers to; null if unknown. */
  readonly bytes: number | null
}

/** The events of a run. Secrets are redacted. */
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
      /** The line of the script, from 1; null if unknown. */
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
      /** The answer that the script got, as JSON text without secrets; null for a failure. */
      readonly resultJson: string | null
    }
  /** A call waits for approval; `approvalId` is its id for `Sandglass.approve`. */
  | {
      readonly type: 'approval_requested'
      readonly executionId: string
      readonly callId: string
      readonly approvalId: string
      readonly name: string
      readonly effect: EffectMark | null
      readonly args: unknown
    }
  | {
      readonly type: 'approval_decided'
      readonly executionId: string
      readonly callId: string
      readonly approvalId: string
      readonly name: string
      readonly approved: boolean
      /** Null if it was approved. */
      readonly reason: string | null
      /** The person who decided; null if nobody did, or nobody said who. */
      readonly by: string | null
      /** The arguments in place of those of the script, or null. */
      readonly args: unknown
      readonly waitedMs: number
    }
  /** The script showed a value. `place` is its index among the displays of the result. */
  | ({ readonly type: 'display'; readonly executionId: string; readonly place: number } & Display)
  /** A collected file has arrived. Its content is in the result. */
  | { readonly type: 'file'; readonly executionId: string; readonly path: string; readonly size: number }
  | { readonly type: 'result'; readonly executionId: string; readonly result: ExecutionResult<T> }

/** A file for a sandbox: bytes, text as UTF-8, or one of these with permission bits (default 0o644); a file of the host; a stream of bytes. */
export type FileInput =
  | Uint8Array
  | string
  | { readonly content: Uint8Array | string; readonly mode?: number }
  /** A path on the host. It is read while it is sent, and never held in memory as a whole. */
  | { readonly path: string; readonly mode?: number }
  /** `size`: its bytes, if known. More bytes than the disk holds are then refused before anything is sent. */
  | { readonly stream: AsyncIterable<Uint8Array | string>; readonly size?: number; readonly mode?: number }

/** Files for a sandbox, by their paths in it. */
export type FilesInput = Readonly<Record<string, FileInput>>

/** One script to run in one checked-out sandbox. */
export interface RunRequest {
  readonly script: string
  /** Generated when absent; echoed on every event and on the result. Not empty, at most 256 characters. */
  readonly executionId?: string
  /** Names that must be among `secrets`, checked before anything runs. */
  readonly requiredSecrets?: readonly string[]
  /** Environment variables of this run only; redacted in all output. */
  readonly secrets?: Readonly<Record<string, string>>
  /** Further values to redact in all output, by name, such as keys of host tools. The script does not get them. */
  readonly hide?: Readonly<Record<string, string>>
  /** JSON values that become globals of the script, by value. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** Files for the workspace, by path relative to it: at most 1000, and 64 MiB of bytes and text together. */
  readonly files?: FilesInput
  /** The standard input of the script and of its programs, at most 16 MiB; text as UTF-8. Default: empty. */
  readonly stdin?: Uint8Array | string
  /** Globs of files to collect: `*`, `?`, `[…]` and `**`. A name that begins with a dot matches only if the glob has the dot, too. */
  readonly collect?: readonly string[]
  /** Limits of the files that `collect` matches: files beyond them are left out, and `limitsHit` names the limit. */
  readonly collectLimits?: CollectLimits
  /** The tools that the script may call on the host. */
  readonly tools?: RunTools
  /**
   * Python that is run before the script, in the same globals: imports, helpers. It is compiled separately, so that the script
   * keeps its line numbers. Trusted: no policy checks it.
   */
  readonly preamble?: string
  /** Python that is run after a script that ended without an error, in the same globals. Trusted: no policy checks it. */
  readonly postamble?: string
  /** Cancels the run. */
  readonly signal?: AbortSignal
}
