import { AsyncLocalStorage } from 'node:async_hooks'

/** The context that a caller attaches to everything reported about its runs. */
export interface TraceContext {
  readonly traceId: string
  /** Further fields for logs. */
  readonly [name: string]: unknown
}

const storage = new AsyncLocalStorage<TraceContext>()

/**
 * Runs a function. Everything that Sandglass reports about calls made within it, at any depth and time, carries this context.
 */
export function withTrace<T>(context: TraceContext, act: () => T): T {
  if (typeof context?.traceId !== 'string') throw new TypeError('withTrace: traceId must be a string')
  return storage.run(context, act)
}

/** The current context, or undefined. */
export function currentTrace(): TraceContext | undefined {
  return storage.getStore()
}
