import type { Violation } from '../executor/index.ts'

/** What came of an attempt that has to be made again, as the next prompt tells it. */
export interface Failure {
  /** The script, or null when the answer held none. */
  readonly script: string | null
  /** In one sentence. */
  readonly error: string
  readonly traceback: string | null
  /** What the checker found; then nothing ran. */
  readonly violations: readonly Violation[]
  /** What the script printed before it failed. */
  readonly stdout: string
  readonly stderr: string
  /** Tool calls that failed, as the script was told. */
  readonly failedCalls: readonly { readonly name: string; readonly code: string; readonly message: string }[]
  /** Calls of this task with the effect `write` that went through: another script does not undo them. */
  readonly writes: readonly { readonly name: string; readonly args: unknown }[]
  /** What repeats itself, in a sentence, or null. */
  readonly repetition: string | null
}
