import type { CellEnd, CheckpointState } from './result.ts'
import type { RunTranscript } from './run-transcript.ts'

const UNKNOWN: CheckpointState = { grade: 'none', lacks: ['the session did not report its state'] }
const LOST = { state: 'lost', checkpoint: UNKNOWN, missing: [], ended: [] } as const

/** The end of a cell. Without a report of its sandbox, the state is lost. */
export function cellEndOf({ value, done, redactor }: RunTranscript): CellEnd {
  const { state, checkpoint, missing, ended } = done?.cell ?? LOST
  const redactAll = (texts: readonly string[]): string[] => texts.map((text) => redactor.text(text))
  return {
    value: value ?? null,
    state,
    checkpoint: { grade: checkpoint.grade, lacks: redactAll(checkpoint.lacks) },
    missing: redactAll(missing),
    ended: redactAll(ended),
  }
}
