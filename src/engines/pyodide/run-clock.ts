/**
 * The deadline of a run, which moves while tools execute on the host, `maxWaitMs` in total. Only the process of the script
 * knows how much of that time the script used itself: its watchdog ends the script earlier.
 */
export class RunClock {
  readonly #base: number
  readonly #maxWaitMs: number
  #executedMs = 0
  #since: number | undefined

  constructor(startedAt: number, timeoutMs: number, maxWaitMs: number) {
    this.#base = startedAt + timeoutMs
    this.#maxWaitMs = maxWaitMs
  }

  /** The time by `performance.now()` at which the script must end. */
  get deadline(): number {
    const present = this.#since === undefined ? 0 : performance.now() - this.#since
    return this.#base + Math.min(this.#executedMs + present, this.#maxWaitMs)
  }

  /** Takes the host's report: how long tools have executed so far, and whether one executes now. */
  report(executedMs: number, executing: boolean): void {
    this.#executedMs = Math.max(this.#executedMs, executedMs)
    this.#since = executing ? performance.now() : undefined
  }
}
