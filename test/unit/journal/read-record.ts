import { type JournalBody, recordOf, type RunRecord } from '../../../src/journal/index.ts'
import { eventsOf, runIdAt } from './sample-events.ts'

/** The id of the run whose events are read. */
export const ID: string = runIdAt(1)

/** The record of a run with these events. */
export function readRecord(...bodies: readonly JournalBody[]): RunRecord {
  return recordOf(eventsOf(ID, bodies))
}

/** An attempt of which only the number is known. */
export const EMPTY: Readonly<Record<string, unknown>> = {
  status: null,
  error: null,
  traceback: null,
  prompt: null,
  generation: null,
  reviews: [],
  cost: null,
  script: null,
  violations: [],
  hasResult: false,
  finalData: null,
  intermediates: [],
  displays: [],
  logs: [],
  toolCalls: [],
  stdout: '',
  stderr: '',
  warnings: [],
  sandbox: null,
  executionMs: null,
  durationMs: null,
  repetition: null,
  files: [],
  rerun: null,
}
