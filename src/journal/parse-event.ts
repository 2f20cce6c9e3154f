import { parseBounded } from '../support/index.ts'
import { type JournalEvent, JOURNAL_VERSION } from './events.ts'

/** The known types; events of types from later versions are ignored. */
const TYPES: ReadonlySet<string> = new Set<JournalEvent['type']>([
  'run_started',
  'step_started',
  'prompt_written',
  'script_generated',
  'script_checked',
  'sandbox_assigned',
  'tool_called',
  'tool_answered',
  'intermediate',
  'log',
  'script_executed',
  'attempt_ended',
  'stagnation_found',
  'step_ended',
  'run_ended',
])

/** Parses a line; undefined if it is not an event, like the last line of a process that was killed, or holds too much. */
export function parseEvent(line: string): JournalEvent | undefined {
  let given: unknown
  try {
    given = parseBounded(line)
  } catch {
    return undefined
  }
  return isEvent(given) ? given : undefined
}

function isEvent(given: unknown): given is JournalEvent {
  if (typeof given !== 'object' || given === null) return false
  const { v, run_id: runId, seq, at, type } = given as Partial<Record<string, unknown>>
  return (
    v === JOURNAL_VERSION &&
    typeof runId === 'string' &&
    typeof seq === 'number' &&
    typeof at === 'string' &&
    typeof type === 'string' &&
    TYPES.has(type)
  )
}
