import type { ToolCallFrame, ToolFailure, ToolSignature } from '../protocol/index.ts'

/** Tools that a script may call: what they look like to it, and who answers. The executor runs none of them itself. */
export interface RunTools {
  /** What the harness makes functions of. */
  readonly signatures: readonly ToolSignature[]
  /** Opens the host's side for one run. */
  open(run: ToolRun): ToolPort
}

/** One run, as those who answer its calls see it. */
export interface ToolRun {
  readonly executionId: string
  /** Hands an answer to the script. One that comes after the run is dropped. Resolves when it is on its way. */
  answer(id: string, answer: ToolAnswer): Promise<void>
  /** A call began. */
  began(call: ToolCallFrame): void
  /** A call that began came to its end. */
  ended(id: string, outcome: ToolOutcome): void
  /** A text without the secrets of the run. */
  redact(text: string): string
}

/** What a call came to, as the script is told: JSON text, so that it is written once. */
export type ToolAnswer = { readonly resultJson: string } | { readonly error: ToolFailure }

/** What a call came to, for the record. */
export interface ToolOutcome {
  readonly ms: number
  readonly error: ToolFailure | undefined
}

/** The host's side of the calls of one run. */
export interface ToolPort {
  /** Takes a call. Resolves when there is room for more: until then nothing is read from the sandbox. Never rejects. */
  take(call: ToolCallFrame): Promise<void>
  /** The run is over: what still runs is aborted, and answers nothing more. Idempotent. */
  close(): void
}
