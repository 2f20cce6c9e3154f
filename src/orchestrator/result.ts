import type { RunRecord } from '../journal/index.ts'
import { agentContext } from './agent-context.ts'

/** What a task came to (mission: ToolExecutionResult; requirement OR-07). */
export interface ToolExecutionResult<T = unknown> {
  readonly success: boolean
  /** As the script gave it, or as `output` makes it. */
  readonly finalData: T | null
  /** Why there is no answer, specifically; null when there is one. */
  readonly error: string | null
  /** What there was when the run ended without an answer: data of another shape than asked, or what was emitted. */
  readonly partial: unknown
  readonly record: RunRecord
  /** An XML block for the agent's messages; nothing in it can break out of it. At most about `maxChars` of content. */
  toAgentContext(options?: { readonly maxChars?: number }): string
}

/** A result from its record. */
export function resultOf<T>(record: RunRecord, finalData: T | null): ToolExecutionResult<T> {
  const { success, error, partial } = record
  return {
    success,
    finalData,
    error,
    partial,
    record,
    toAgentContext: ({ maxChars } = {}) => agentContext(record, maxChars),
  }
}
