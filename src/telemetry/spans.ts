import { AsyncLocalStorage } from 'node:async_hooks'
import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel'
import { currentTrace } from './trace.ts'

/** The spans of workspaces. Each is a tracing channel of `node:diagnostics_channel`, with `sandglass:` before its name. */
export type SpanName = (typeof SPAN_NAMES)[number]

const SPAN_NAMES = [
  'workspace.create',
  'workspace.cleanup',
  'workspace.stage.files',
  'workspace.stage.dir',
  'workspace.run',
  'workspace.collect',
  'workspace.inline',
] as const
/** Made once: `tracingChannel` takes longer than the check for subscribers. */
const SPAN_CHANNELS = Object.fromEntries(
  SPAN_NAMES.map((name) => [name, tracingChannel<SpanAttributes, SpanAttributes>(`sandglass:${name}`)]),
) as Readonly<Record<SpanName, TracingChannel<SpanAttributes, SpanAttributes>>>

/** Attributes of a span. Some are added just before it ends. None holds content, arguments or variables. */
export interface SpanAttributes {
  /** Of the caller (see `withTrace`), if there is one. */
  trace_id?: string
  exec_id?: string
  /** The id of a run of a script, as its result has it. */
  execution_id?: string
  path?: string
  count?: number
  patterns?: readonly string[]
  cmd?: string
  cwd?: string
  exit_code?: number
  timed_out?: boolean
  host_path?: string
  to?: string
  mount_used?: boolean
}

const silent = new AsyncLocalStorage<true>()

/**
 * Runs a function as a span: `asyncEnd` of its channel is its end, `error` its failure. Costs nothing without a subscriber.
 * @param act may add attributes while it runs.
 */
export async function traceSpan<T>(
  name: SpanName,
  attributes: SpanAttributes,
  act: (attributes: SpanAttributes) => Promise<T>,
): Promise<T> {
  const span = subscribedChannelOf(name, attributes)
  if (span === undefined) return act(attributes)
  const results: T[] = []
  // The result is not published: it may be the output of a program.
  await span.tracePromise(async () => void results.push(await act(attributes)), attributes)
  return results[0] as T
}

/** Begins a span that ends with a call of the result. Its failure is the argument of that call; later calls change nothing. */
export function beginSpan(name: SpanName, attributes: SpanAttributes): (failure?: unknown) => void {
  const span = subscribedChannelOf(name, attributes)
  if (span === undefined) return () => undefined
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  span.tracePromise(() => promise, attributes).catch(() => undefined)
  return (failure) => (failure === undefined ? resolve() : reject(failure))
}

/** Runs a function as part of another operation, without publishing its spans. The function must not call code of the user. */
export function withoutSpans<T>(act: () => Promise<T>): Promise<T> {
  return silent.run(true, act)
}

/** The channel of a span, if there is a subscriber. */
function subscribedChannelOf(
  name: SpanName,
  attributes: SpanAttributes,
): TracingChannel<SpanAttributes, SpanAttributes> | undefined {
  const span = SPAN_CHANNELS[name]
  // A cleanup is part of no other operation, so it is never silent, even if the idle timer was set during a silent operation.
  const isSilent = name !== 'workspace.cleanup' && silent.getStore() === true
  if (!span.hasSubscribers || isSilent) return undefined
  const trace = currentTrace()
  if (trace !== undefined) attributes.trace_id = trace.traceId
  return span
}
