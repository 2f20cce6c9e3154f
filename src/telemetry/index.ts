export { CHANNELS, publish, type TelemetryEvent } from './channels.ts'
export { logTo, type StructuredLogger } from './log-to.ts'
export { beginSpan, type SpanAttributes, traceSpan, withoutSpans } from './spans.ts'
export { currentTrace, type TraceContext, withTrace } from './trace.ts'
