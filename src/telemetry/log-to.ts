import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { CHANNELS, type TelemetryEvent } from './channels.ts'

/** The part of a logger that is needed: pino has it, and so has `console`. */
export interface StructuredLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * Writes what the orchestrator tells to a logger: one structured line for each event, failures as warnings. Call what it
 * returns, or dispose of it, to stop. What the logger throws is lost.
 */
export function logTo(logger: StructuredLogger): (() => void) & Disposable {
  if (typeof logger?.info !== 'function' || typeof logger.warn !== 'function') {
    throw new TypeError('logTo: a logger has info(fields, message) and warn(fields, message)')
  }
  const listener = (message: unknown): void => {
    const { event, ...fields } = message as TelemetryEvent
    const failed = fields['ok'] === false
    // What a subscriber throws would end the process.
    try {
      const logged: unknown = logger[failed ? 'warn' : 'info']({ event, ...fields }, event)
      Promise.resolve(logged).catch(() => undefined)
    } catch {
      // A logger looks on; what it throws is its own affair.
    }
  }
  for (const name of Object.values(CHANNELS)) subscribe(name, listener)
  const stop = (): void => {
    for (const name of Object.values(CHANNELS)) unsubscribe(name, listener)
  }
  return Object.assign(stop, { [Symbol.dispose]: stop })
}
