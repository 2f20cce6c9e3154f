import type { PythonToolSource, ToolCallFrame, ToolFailure, ToolSignature } from '../protocol/index.ts'

/** Tools that a script may call: what they look like to it, and who answers. The executor runs none of them itself. */
export interface RunTools {
  /** What the harness makes functions of. */
  readonly signatures: readonly ToolSignature[]
  /** Tools that are Python themselves: the harness loads them, and calls of them do not reach the host. */
  readonly sources?: readonly PythonToolSource[]
  /** Secrets that the run must have for them, beside those that it asks for itself. */
  readonly requiredSecrets?: readonly string[]
  /** Opens the host's side for one run. */
  open(run: ToolRun): ToolPort
}

/** One run, as those who answer its calls see it. */
export interface ToolRun {
  readonly executionId: string
  /** Hands an answer to the script. One that comes after the run is dropped. Resolves when it is on its way. */
  answer(id: string, answer: ToolAnswer): Promise<void>
  /** A call began; `effect` is the mark of its tool, null where there is no such tool. */
  began(call: ToolCallFrame, effect: EffectMark | null): void
  /** A call that began came to its end. */
  ended(id: string, outcome: ToolOutcome): void
  /** A text without the secrets of the run. */
  redact(text: string): string
}

/** What a tool says that its calls may change. */
export type EffectMark = 'read' | 'idempotent' | 'write'

/** What a call came to, as the script is told: JSON text, so that it is written once. */
export type ToolAnswer = { readonly resultJson: string } | { readonly error: ToolFailure }

/** What a call came to, for the record. */
export interface ToolOutcome {
  readonly ms: number
  readonly error: ToolFailure | undefined
  /** What the script is given, as JSON text; absent for a failure. */
  readonly resultJson?: string | undefined
}

/** The host's side of the calls of one run. */
export interface ToolPort {
  /** Takes a call. Resolves when there is room for more: until then nothing is read from the sandbox. Never rejects. */
  take(call: ToolCallFrame): Promise<void>
  /** The run is over: what still runs is aborted, and answers nothing more. Idempotent. */
  close(): void
}
