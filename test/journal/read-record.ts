import { type JournalBody, recordOf, type RunRecord } from '../../src/journal/index.ts'
import { eventsOf, runIdAt } from './sample-events.ts'

/** The run whose events are read. */
export const ID: string = runIdAt(1)

/** The record of a run with these events. */
export function read(...bodies: readonly JournalBody[]): RunRecord {
  return recordOf(eventsOf(ID, bodies))
}

/** What an attempt has of which nothing is known but its number. */
export const EMPTY: Readonly<Record<string, unknown>> = {
  status: null,
  error: null,
  traceback: null,
  prompt: null,
  generation: null,
  script: null,
  violations: [],
  hasResult: false,
  finalData: null,
  intermediates: [],
  logs: [],
  toolCalls: [],
  stdout: '',
  stderr: '',
  warnings: [],
  sandbox: null,
  executionMs: null,
  durationMs: null,
  repetition: null,
}
