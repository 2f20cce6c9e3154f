import type { CollectedFile, Display } from '../executor/index.ts'
import type { RunRecord } from '../journal/index.ts'
import { agentContext } from './agent-context.ts'

/** The result of a task. `success` tells whether there is an answer: it narrows `finalData` and `error`. */
export type ToolExecutionResult<T = unknown> = TaskFacts & (WithAnswer<T> | WithoutAnswer)

interface WithAnswer<T> {
  readonly success: true
  /** The data of the script, or the value that `output` returned for it. */
  readonly finalData: T
  readonly error: null
}

interface WithoutAnswer {
  readonly success: false
  readonly finalData: null
  /** The specific reason for the missing answer. */
  readonly error: string
}

interface TaskFacts {
  /** The best data of a task without an answer: the latest result of a script, or emitted data. */
  readonly partial: unknown
  readonly record: RunRecord
  /**
   * The files that `collect` matched: in PLAN mode those of the last script, in INTERACTIVE mode the newest of each path
   * of all steps, at most 100 files and 64 MiB. In a workspace, those that existed after the last script.
   */
  readonly files: readonly CollectedFile[]
  /**
   * The values that scripts showed: in PLAN mode the last script, in INTERACTIVE mode all steps that did not fail; the newest
   * 100, of at most 16 MiB together.
   */
  readonly displays: readonly Display[]
  /** An XML block for the agent's messages; its content cannot close it. At most about `maxChars` of content. */
  toAgentContext(options?: { readonly maxChars?: number }): string
}

/** Creates the result from a record. `answer` is undefined if the task has none. */
export function resultOf<T>(
  record: RunRecord,
  answer: { readonly data: T } | undefined,
  files: readonly CollectedFile[] = [],
  displays: readonly Display[] = [],
): ToolExecutionResult<T> {
  return {
    ...(answer === undefined
      ? { success: false, finalData: null, error: record.error ?? 'the task ended without an answer' }
      : { success: true, finalData: answer.data, error: null }),
    partial: record.partial,
    record,
    files,
    displays,
    toAgentContext: ({ maxChars } = {}) => agentContext(record, maxChars, files),
  }
}
