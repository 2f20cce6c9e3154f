import { messageOf, SandglassError } from '../errors/index.ts'
import type { PooledSandbox } from './pooled-sandbox.ts'
import type { PoolStats } from './stats.ts'

/** The error of each call of a closed pool. */
export function closedError(): SandglassError {
  return new SandglassError('pool_closed', 'the sandbox pool is closed; make a new one')
}

/** The error of a checkout whose signal fired. */
export function abortedError(signal: AbortSignal | undefined): SandglassError {
  return new SandglassError('aborted', 'the checkout of a sandbox was aborted by its signal', { cause: signal?.reason })
}

/** The state of a shelf when a checkout timed out. */
export interface Fullness extends Pick<PoolStats, 'leased' | 'starting' | 'waiting'> {
  readonly poolSize: number
  readonly maxOverflow: number
  readonly timeoutMs: number
  /** Why a sandbox that starts waits; undefined if none does, or the engine does not say it. */
  readonly waitsFor: string | undefined
}

/**
 * The error of a checkout that reached its deadline.
 * @param name of the spec.
 * @param wanted the one sandbox that it waited for, or null if any would do.
 * @param lastError the last error of the engine; undefined while it works.
 */
export function exhaustedError(
  name: string,
  wanted: PooledSandbox | null,
  { leased, starting, waiting, poolSize, maxOverflow, timeoutMs, waitsFor }: Fullness,
  lastError: unknown,
): SandglassError {
  const sizes = [
    `${leased} leased`,
    ...(starting > 0 ? [`${starting} starting`] : []),
    `pool size ${poolSize}`,
    `overflow ${maxOverflow}`,
    `${waiting} waiting`,
    `after ${timeoutMs} ms`,
  ].join(', ')
  const what = wanted === null ? `sandbox of spec "${name}"` : `lease of sandbox ${wanted.sandbox.id}`
  const error = lastError === undefined ? '' : `; the last error of the engine: ${messageOf(lastError)}`
  const wait = waitsFor === undefined ? '' : `; a sandbox that starts waits: ${waitsFor}`
  return new SandglassError(
    'pool_exhausted',
    `pool exhausted: no ${what} became free (${sizes})${error}${wait}; release leases sooner, ` +
      'or raise poolSize, maxOverflow or checkoutTimeoutMs',
    lastError === undefined ? undefined : { cause: lastError },
  )
}
