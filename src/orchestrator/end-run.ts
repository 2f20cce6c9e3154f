import type { RunStatus } from '../outcomes/index.ts'

/** Thrown to end a run from any depth; it never leaves the orchestrator. */
export class EndRun extends Error {
  readonly status: RunStatus

  constructor(status: RunStatus, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.status = status
  }
}
