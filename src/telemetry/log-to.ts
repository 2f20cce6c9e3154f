import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { CHANNELS, type TelemetryEvent } from './channels.ts'

/** The required part of a logger; pino and `console` have it. */
export interface StructuredLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * Writes the events of the orchestrator to a logger: one structured line for each event, failures as warnings. Call the
 * returned function, or dispose of it, to stop. Errors of the logger are ignored.
 */
export function logTo(logger: StructuredLogger): (() => void) & Disposable {
  if (typeof logger?.info !== 'function' || typeof logger.warn !== 'function') {
    throw new TypeError('logTo: the logger must have the methods info(fields, message) and warn(fields, message)')
  }
  const listener = (message: unknown): void => {
    const { event, ...fields } = message as TelemetryEvent
    const failed = fields['ok'] === false
    // An error in a subscriber would end the process.
    try {
      const logged: unknown = logger[failed ? 'warn' : 'info']({ event, ...fields }, event)
      Promise.resolve(logged).catch(() => undefined)
    } catch {
      // Errors of the logger are ignored.
    }
  }
  for (const name of Object.values(CHANNELS)) subscribe(name, listener)
  const stop = (): void => {
    for (const name of Object.values(CHANNELS)) unsubscribe(name, listener)
  }
  return Object.assign(stop, { [Symbol.dispose]: stop })
}
