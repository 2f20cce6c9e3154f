import { AsyncLocalStorage } from 'node:async_hooks'

/** What the caller wants to find again on everything that is told of its runs. */
export interface TraceContext {
  readonly traceId: string
  /** Further words for logs. */
  readonly [name: string]: unknown
}

const storage = new AsyncLocalStorage<TraceContext>()

/**
 * Runs a function so that all that Sandglass tells from within it, however far down and however late, carries this
 * context (requirement OR-09).
 */
export function withTrace<T>(context: TraceContext, act: () => T): T {
  if (typeof context?.traceId !== 'string') throw new TypeError('withTrace: traceId must be a string')
  return storage.run(context, act)
}

/** The context that holds here, or undefined. */
export function currentTrace(): TraceContext | undefined {
  return storage.getStore()
}
