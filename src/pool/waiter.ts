import type { SandglassError } from '../errors/index.ts'
import type { Lease } from './lease.ts'
import type { PooledSandbox, LeaseRequest } from './pooled-sandbox.ts'
import { abortedError } from './refusals.ts'

/** One checkout that is not settled yet. */
export interface Waiter extends LeaseRequest {
  readonly promise: Promise<Lease>
  wanted: PooledSandbox | null
  /** The sandbox whose health is being checked for this waiter. */
  checking: PooledSandbox | null
  /** The reason that it was not served at once; null if it was, or is about to be. */
  outcome: 'miss' | 'wait' | null
  /** A creation was started for it. */
  demanded: boolean
  /** The error of the creation started for it, if that failed. It starts no other one, and is refused when none is in progress. */
  failed: { readonly error: unknown } | null
  /** Starts its deadline and listens to its signal. Call it if the waiter was not served at once. */
  wait(): void
  grant(lease: Lease): void
  refuse(error: unknown): void
}

/** The request of a waiter, the time that it waits, and the callbacks for when it gives up. */
export interface WaiterOptions {
  readonly key: string
  readonly wanted: PooledSandbox | null
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** Must lead to `refuse` with the error of the deadline. */
  readonly onDeadline: (waiter: Waiter) => void
  /** Must lead to `refuse` with the error given. */
  readonly onAbort: (waiter: Waiter, error: SandglassError) => void
}

/** Makes a waiter. `wait` adds its timer and its listener; `grant` and `refuse` remove them. */
export function makeWaiter(options: WaiterOptions): Waiter {
  const { promise, resolve, reject } = Promise.withResolvers<Lease>()
  const { signal } = options
  let timer: NodeJS.Timeout | undefined
  // The listener is removed with the wait: a signal that outlives it would keep the lease reachable through `resolve`.
  const onAbort = (): void => options.onAbort(waiter, abortedError(signal))
  const cleanUp = (): void => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
  const waiter: Waiter = {
    promise,
    key: options.key,
    wanted: options.wanted,
    checking: null,
    outcome: null,
    demanded: false,
    failed: null,
    wait() {
      timer = setTimeout(() => options.onDeadline(waiter), options.timeoutMs)
      signal?.addEventListener('abort', onAbort)
    },
    grant(lease) {
      cleanUp()
      resolve(lease)
    },
    refuse(error) {
      cleanUp()
      reject(error)
    },
  }
  return waiter
}
