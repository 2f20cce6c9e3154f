import { channel } from 'node:diagnostics_channel'

/** A message on the diagnostics channel `sandglass:executor`. */
export interface ExecutorDiagnostic {
  readonly event: 'skipped-line'
  readonly executionId: string
  readonly reason: string
  /** The beginning of the line, redacted. */
  readonly text: string
}

const CHANNEL = 'sandglass:executor'
const MAX_TEXT = 200

/** Reports a line that was skipped. Does nothing without a subscriber. */
export function reportSkipped(executionId: string, reason: string, text: () => string): void {
  const diagnostics = channel(CHANNEL)
  if (!diagnostics.hasSubscribers) return
  const message: ExecutorDiagnostic = { event: 'skipped-line', executionId, reason, text: text().slice(0, MAX_TEXT) }
  diagnostics.publish(message)
}
