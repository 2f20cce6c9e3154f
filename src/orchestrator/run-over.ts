import type { RunStatus } from '../journal/index.ts'

/** Ends a run from wherever it stands; never leaves the orchestrator. */
export class RunOver extends Error {
  readonly status: RunStatus

  constructor(status: RunStatus, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.status = status
  }
}
