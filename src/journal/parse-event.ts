import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseBounded } from '../support/index.ts'
import { type JournalEvent, JOURNAL_VERSION } from './events.ts'
import { isKnownType } from './sound-events.ts'

/** Parses a line; undefined if it exceeds the bounds or is not an event, such as the last line of a process that was killed. */
export function parseEvent(line: string): JournalEvent | undefined {
  let given: unknown
  try {
    given = parseBounded(line)
  } catch {
    return undefined
  }
  return isEvent(given) ? given : undefined
}

/** The maximum time in which lines are parsed without a turn of the event loop. A single line may take longer. */
const MAX_READ_MS = 20

/** Parses the lines of a stored task. It can be long, so the event loop gets turns in between. */
export async function parseEvents(lines: Iterable<string>): Promise<JournalEvent[]> {
  const events: JournalEvent[] = []
  let since = performance.now()
  for (const line of lines) {
    const event = parseEvent(line)
    if (event !== undefined) events.push(event)
    if (performance.now() - since < MAX_READ_MS) continue
    await nextTurn()
    since = performance.now()
  }
  return events
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
    // Events of types from later versions are ignored.
    isKnownType(type)
  )
}
