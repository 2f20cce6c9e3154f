const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 10_000

/** Spaces the tries of something that keeps failing: 100 ms, then twice as long each time, up to 10 s. */
export interface BackOff {
  /** Whether a next try is already planned: until then there is nothing to do. */
  readonly pending: boolean
  /** Plans the next try. Failures of tries made side by side count once. */
  failed(): void
  /** Forgets the failures so far: the next one waits 100 ms again. */
  worked(): void
  /** Drops the planned try. */
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
    failed() {
      if (timer !== null) return
      timer = setTimeout(() => {
        timer = null
        retry()
      }, delayMs)
      timer.unref()
      delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)
    },
    worked() {
      delayMs = FIRST_DELAY_MS
    },
    cancel() {
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}
