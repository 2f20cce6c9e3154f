import { channel } from 'node:diagnostics_channel'

/** The channels of `node:diagnostics_channel` on which the orchestrator publishes its tasks. */
export const CHANNELS = {
  scriptGenerated: 'sandglass:script_generated',
  scriptExecuted: 'sandglass:script_executed',
  runEnded: 'sandglass:run_ended',
} as const

/** A published event: fields for a log, in snake_case. */
export interface TelemetryEvent {
  readonly event: 'script_generated' | 'script_executed' | 'run_ended'
  /** Of the caller (see `withTrace`), or null. */
  readonly trace_id: string | null
  readonly run_id: string
  readonly [name: string]: unknown
}

/** Publishes an event. Costs nothing without a subscriber. */
export function publish(name: keyof typeof CHANNELS, event: () => TelemetryEvent): void {
  const target = channel(CHANNELS[name])
  if (target.hasSubscribers) target.publish(event())
}
