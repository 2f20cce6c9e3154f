export { CHANNELS, publish, type TelemetryEvent } from './channels.ts'
export { logTo, type StructuredLogger } from './log-to.ts'
export { traceSpan } from './spans.ts'
export { currentTrace, type TraceContext, withTrace } from './trace.ts'
