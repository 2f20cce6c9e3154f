export {
  type AttemptStatus,
  type BudgetName,
  type JournalBody,
  type JournalEvent,
  type Place,
  type Repetition,
} from './events.ts'
export { Journal } from './journal.ts'
export { jsonlStore } from './jsonl-store.ts'
export { memoryStore } from './memory-store.ts'
export type { AttemptRecord, GenerationRecord, RunRecord, SandboxRecord, StepRecord, ToolCallRecord } from './record.ts'
export { recordOf } from './record-of.ts'
export { isSound } from './sound-events.ts'
export { checkRunId, newRunId } from './run-id.ts'
export { sqliteStore } from './sqlite-store.ts'
export type { JournalStore, RunSummary, StoreOptions } from './store.ts'
