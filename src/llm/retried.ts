import { setTimeout as sleep } from 'node:timers/promises'
import { ModelError } from './caller.ts'

/** How often a call is made again where nobody says otherwise. */
export const RETRIES = 4
/** The first pause between two calls, in milliseconds; each further one is twice as long. */
export const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 60_000

/** Why one try came to nothing. */
export interface Refusal {
  /** Who refused and how: `http://… answered 429`. */
  readonly what: string
  /** What was said with it; it may be empty. */
  readonly said: string
  /** Whether the same call may succeed later. */
  readonly again: boolean
  /** How long to wait, where that was told. */
  readonly pauseMs?: number | undefined
  readonly cause?: unknown
}

/** How a call is tried again. */
export interface RetryOptions {
  readonly maxRetries?: number | undefined
  readonly firstPauseMs?: number | undefined
  /** Ends a pause. */
  readonly signal: AbortSignal
  /** Told of each refusal that is followed by a pause. */
  readonly onProblem?: ((problem: string) => void) | undefined
}

/**
 * Makes a call again as long as it is refused for a reason that passes, after the time that was asked for or a pause that
 * doubles.
 * @throws ModelError for a refusal that does not pass, for the last one, and for one that asks for more than a minute.
 */
export async function retried<T extends object>(
  call: () => Promise<T | Refusal>,
  { maxRetries = RETRIES, firstPauseMs = FIRST_PAUSE_MS, signal, onProblem }: RetryOptions,
): Promise<T> {
  for (let tried = 0; ; tried += 1) {
    const outcome = await call()
    if (!isRefusal(outcome)) return outcome
    const { pauseMs = Math.min(MAX_PAUSE_MS, firstPauseMs * 2 ** tried), again, cause } = outcome
    const tooLong = again && pauseMs > MAX_PAUSE_MS
    if (!again || tooLong || tried >= maxRetries) {
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

function isRefusal(outcome: object): outcome is Refusal {
  return 'again' in outcome
}

function problemOf({ what, said }: Refusal, wait: string): string {
  return said === '' ? `${what}${wait}` : `${what}${wait}: ${said}`
}

/** The pause that a `Retry-After` asks for, in seconds or as a date; undefined where it says nothing. */
export function pauseOf(header: string | null | undefined): number | undefined {
  if (header === null || header === undefined) return undefined
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

/** Whether what answers with this status may answer otherwise soon. */
export function passes(status: number): boolean {
  return status === 429 || status >= 500
}
