import { retryAfterOf, statusOf } from './explain.ts'

/** The pauses before a busy server is asked again; each is up to half longer, so that hosts do not ask together. */
const PAUSES_MS = [100, 300, 1000, 2000]

/** The bounds within which requests are repeated. */
export interface Patience {
  /** The time from the first request to the last one, in milliseconds. */
  readonly withinMs: number
  /** Fires when the caller has given up. */
  readonly over: AbortSignal
  /** Resolves when another request may be sent. */
  readonly turn: () => Promise<void>
}

/** Repeats a request that a busy server refused, not before the time that it named, until the caller has given up. */
export async function askAgain<T>(request: () => Promise<T>, { withinMs, over, turn }: Patience): Promise<T> {
  const start = performance.now()
  for (const leastMs of PAUSES_MS) {
    try {
      return await request()
    } catch (error) {
      const status = statusOf(error)
      const isBusy = status !== undefined && (status === 429 || status >= 500)
      const pauseMs = Math.max(leastMs, retryAfterOf(error) ?? 0) * (1 + Math.random() / 2)
      if (!isBusy || performance.now() - start + pauseMs > withinMs) throw error
      await new Promise((resolve) => {
        setTimeout(resolve, pauseMs)
      })
      await turn()
      over.throwIfAborted()
    }
  }
  return request()
}
