const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 10_000

/** Delays retries of a failing operation: 100 ms at first, then twice as long each time, up to 10 s. */
export interface BackOff {
  /** True if a retry is scheduled. */
  readonly pending: boolean
  /** Schedules a retry. Does nothing while one is scheduled: concurrent failures count once. */
  noteFailure(): void
  /** Resets the delay to 100 ms. */
  noteSuccess(): void
  /** Cancels the scheduled retry. */
  cancel(): void
}

/** Makes a back-off that calls `retry`. Its timer does not keep the process alive. */
export function makeBackOff(retry: () => void): BackOff {
  let delayMs = FIRST_DELAY_MS
  let timer: NodeJS.Timeout | null = null
  return {
    get pending() {
      return timer !== null
    },
    noteFailure() {
      if (timer !== null) return
      timer = setTimeout(() => {
        timer = null
        retry()
      }, delayMs)
      timer.unref()
      delayMs = Math.min(delayMs * 2, MAX_DELAY_MS)
    },
    noteSuccess() {
      delayMs = FIRST_DELAY_MS
    },
    cancel() {
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}
