import type { JournalEvent } from '../journal/index.ts'
import type { ToolExecutionResult } from './result.ts'

/** What a task tells while it is worked off: the events of its journal as they are stored, and at last its result. */
export type SolveEvent<T = unknown> =
  | { readonly type: 'event'; readonly event: JournalEvent }
  | { readonly type: 'result'; readonly result: ToolExecutionResult<T> }
