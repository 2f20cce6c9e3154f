import { setTimeout as sleep } from 'node:timers/promises'
import { ModelError } from './caller.ts'

/** The default number of retries. */
export const RETRIES = 4
/** The first pause between two calls, in milliseconds; each further one is twice as long. */
export const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 60_000

/** The failure of one call: an error response, or no response. */
export interface CallFailure {
  /** The source of the failure, such as `http://… answered 429`. */
  readonly source: string
  /** The text of the error; may be empty. */
  readonly detail: string
  /** True if the same call may succeed later. */
  readonly isRetryable: boolean
  /** The pause that the server asks for, if any, in milliseconds. */
  readonly pauseMs?: number | undefined
  readonly cause?: unknown
}

/** Options of {@link retryCall}. */
export interface RetryOptions {
  readonly maxRetries?: number | undefined
  readonly firstPauseMs?: number | undefined
  /** Ends a pause. */
  readonly signal: AbortSignal
  /** Called for each failure that is retried. */
  readonly onProblem?: ((problem: string) => void) | undefined
}

/**
 * Repeats a call while it fails for a transient reason, after the pause that the server requests or a pause that doubles.
 * @throws ModelError for a permanent failure, for the last failure, and if the server requests a pause of more than a minute.
 */
export async function retryCall<T extends object>(
  call: () => Promise<T | CallFailure>,
  { maxRetries = RETRIES, firstPauseMs = FIRST_PAUSE_MS, signal, onProblem }: RetryOptions,
): Promise<T> {
  for (let tried = 0; ; tried += 1) {
    const outcome = await call()
    if (!isFailure(outcome)) return outcome
    const { pauseMs = Math.min(MAX_PAUSE_MS, firstPauseMs * 2 ** tried), isRetryable, cause } = outcome
    const tooLong = isRetryable && pauseMs > MAX_PAUSE_MS
    if (!isRetryable || tooLong || tried >= maxRetries) {
      const wait = tooLong ? ` and asks to wait ${Math.ceil(pauseMs / 1000)} s` : ''
      throw new ModelError(problemOf(outcome, wait), cause === undefined ? undefined : { cause })
    }
    const problem = problemOf(outcome, '')
    onProblem?.(problem)
    await pause(pauseMs, signal, problem)
  }
}

async function pause(ms: number, signal: AbortSignal, problem: string): Promise<void> {
  try {
    await sleep(ms, undefined, { signal })
  } catch {
    throw new DOMException(`given up; the last problem: ${problem}`, { name: 'AbortError', cause: signal.reason })
  }
}

function isFailure(outcome: object): outcome is CallFailure {
  return 'isRetryable' in outcome
}

function problemOf({ source, detail }: CallFailure, wait: string): string {
  return detail === '' ? `${source}${wait}` : `${source}${wait}: ${detail}`
}

/** The pause of a `Retry-After` header, which holds seconds or a date; undefined if it is missing or invalid. */
export function pauseOf(header: string | null | undefined): number | undefined {
  if (header === null || header === undefined) return undefined
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

/** True for a status that a retry may change. */
export function isTransient(status: number): boolean {
  return status === 429 || status >= 500
}

/** Codes of transient network errors of Node and its fetch. Other errors, such as an invalid certificate, are permanent. */
const NETWORK_TROUBLE: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** True for an error of the network that a retry may change. */
export function isNetworkTrouble(error: unknown): boolean {
  return error instanceof Error && 'code' in error && NETWORK_TROUBLE.has(error.code)
}
