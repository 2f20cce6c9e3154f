import type { TaskStatus } from '../outcomes/index.ts'

/** Thrown to end a task from any depth; it never leaves the orchestrator. */
export class EndTask extends Error {
  readonly status: TaskStatus

  constructor(status: TaskStatus, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.status = status
  }
}
