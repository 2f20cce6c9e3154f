import { tracingChannel } from 'node:diagnostics_channel'

/** Attributes of a span, in snake_case. Those that are known at its end are added before it. */
export type SpanAttributes = Record<string, string | number | boolean | readonly string[]>

/**
 * Runs a function as a span on the tracing channel `sandglass:NAME`: `asyncEnd` is its end, `error` its failure. Costs nothing without a
 * subscriber.
 * @param act adds what it finds out to the attributes.
 */
export function traceSpan<T>(
  name: string,
  attributes: SpanAttributes,
  act: (attributes: SpanAttributes) => Promise<T>,
): Promise<T> {
  return tracingChannel<SpanAttributes, SpanAttributes>(`sandglass:${name}`).tracePromise(
    () => act(attributes),
    attributes,
  )
}
