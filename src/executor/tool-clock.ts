/** A call that executes for this long is reported to the harness. Most calls are shorter, and a frame costs as much as a call. */
const REPORT_AFTER_MS = 10
/** Shorter calls are reported together. */
const REPORT_STEP_MS = 100

/**
 * Counts the time in which at least one tool executes on the host during a run. It is not the script's time: the deadline
 * moves. Only the host's own functions start and stop this clock, so no frame of a script can.
 */
export class ToolClock {
  readonly #maxMs: number
  readonly #tell: (executedMs: number, executing: boolean) => void
  #executing = 0
  #since = 0
  #earlierMs = 0
  #reportedMs = 0
  #isReportedExecuting = false
  #stopped = false
  #timer: NodeJS.Timeout | undefined

  /** @param tell reports to the harness the time so far, and whether it continues. */
  constructor(maxMs: number, tell: (executedMs: number, executing: boolean) => void) {
    this.#maxMs = maxMs
    this.#tell = tell
  }

  /** The time so far, at most `maxMs`. */
  get executedMs(): number {
    return Math.min(this.#totalMs, this.#maxMs)
  }

  /** Starts the time of a call. Call the returned function once, when the call has ended. */
  begin(): () => void {
    if (this.#stopped) return () => undefined
    if (this.#executing === 0) this.#start()
    this.#executing += 1
    return () => {
      if (this.#stopped) return
      this.#executing -= 1
      if (this.#executing === 0) this.#pause()
    }
  }

  /** Stops the clock at the end of the run. The harness gets no further reports. */
  stop(): void {
    this.#earlierMs = this.#totalMs
    this.#executing = 0
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  get #totalMs(): number {
    return this.#earlierMs + (this.#executing > 0 ? performance.now() - this.#since : 0)
  }

  #start(): void {
    this.#since = performance.now()
    if (this.#maxMs === 0) return
    this.#timer = setTimeout(() => this.#report(true), REPORT_AFTER_MS)
  }

  #pause(): void {
    clearTimeout(this.#timer)
    this.#earlierMs += performance.now() - this.#since
    if (this.#isReportedExecuting || this.#earlierMs - this.#reportedMs >= REPORT_STEP_MS) this.#report(false)
  }

  #report(executing: boolean): void {
    if (this.#maxMs === 0) return
    this.#isReportedExecuting = executing
    this.#reportedMs = this.#totalMs
    this.#tell(Math.round(this.#reportedMs * 1000) / 1000, executing)
  }
}
