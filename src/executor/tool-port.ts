import type { PythonToolSource, ToolCallFrame, ToolFailure, ToolSignature } from '../protocol/index.ts'

/** The tools that a script may call: their signatures and the function that answers. The executor does not run them. */
export interface RunTools {
  /** The tools for which the harness makes functions. */
  readonly signatures: readonly ToolSignature[]
  /** Python tools: the harness loads them, and their calls do not reach the host. */
  readonly sources?: readonly PythonToolSource[]
  /** Secrets that the tools require, in addition to those that the run requires. */
  readonly requiredSecrets?: readonly string[]
  /** True if calls may wait until a person approves them; that time does not count towards the script's timeout, nor towards `maxToolWaitSec`. */
  readonly mayWait?: boolean
  /** Opens the host's side for one run. */
  open(run: ToolRun): ToolPort
}

/** The interface of a run for its tools. */
export interface ToolRun {
  readonly executionId: string
  /** Sends an answer to the script. An answer after the end of the run is dropped. Resolves when it has been written. */
  answer(id: string, answer: ToolAnswer): Promise<void>
  /** Notes that a call arrived; `effect` is that of its tool, null if there is no such tool. */
  noteCall(call: ToolCallFrame, effect: EffectMark | null): void
  /**
   * Notes that the function of a tool begins: from now on, the time does not count towards the script's timeout. Call the returned
   * function once, when the call has ended.
   */
  noteExecution(id: string): () => void
  /**
   * Notes that a call waits for the approval of a person: from now on, the time does not count towards the script's timeout. Call the
   * returned function once, with the decision.
   */
  noteApproval(id: string, approvalId: string, args: unknown): (decision: ApprovalOutcome) => void
  /** Notes that a call ended. Resolves when it is recorded; the answer is sent after that. */
  noteEnd(id: string, outcome: ToolOutcome): Promise<void>
  /** A text without the secrets of the run. @param isCut true if the text may end within a secret. */
  redact(text: string, isCut?: boolean): string
  /** A copy of a JSON value without the secrets of the run. */
  redactValue(value: unknown): unknown
}

/** The decision about a call, for the record. */
export type ApprovalOutcome = (
  | { readonly approved: true; readonly args: Readonly<Record<string, unknown>> | null }
  | { readonly approved: false; readonly reason: string }
) & { readonly by: string | null }

/** The effect that a tool declares for its calls. */
export type EffectMark = 'read' | 'idempotent' | 'write'

/** The answer to a call, for the script: JSON text, so that it is serialized once. */
export type ToolAnswer = { readonly resultJson: string } | { readonly error: ToolFailure }

/** The outcome of a call, for the record. */
export interface ToolOutcome {
  readonly ms: number
  readonly error: ToolFailure | undefined
  /** The answer for the script, as JSON text; absent for a failure. */
  readonly resultJson?: string | undefined
}

/** The host's side of the calls of one run. */
export interface ToolPort {
  /** Accepts a call. Resolves when there is room for more: until then nothing is read from the sandbox. Never rejects. */
  take(call: ToolCallFrame): Promise<void>
  /** Closes the port at the end of the run: running calls are aborted, and no further call is answered. Idempotent. */
  close(): void
}
