import { isSuccess } from '../outcomes/index.ts'

/** The progress of a batch. */
export class Progress {
  readonly #started = performance.now()
  #answered = 0
  #failed = 0
  /** Requests that an earlier batch answered. */
  skipped = 0
  #lines = 0
  #bytes = 0
  #atEnd = false

  /** Counts a line that was read, of `bytes` bytes. */
  countLine(bytes: number): void {
    this.#lines += 1
    this.#bytes += bytes
  }

  /** Marks the end of the input. */
  markInputEnd(): void {
    this.#atEnd = true
  }

  /** Counts an answer. */
  countAnswer(status: string): void {
    this.#answered += 1
    if (!isSuccess(status)) this.#failed += 1
  }

  /** @param size of the whole input in bytes, where that is known. */
  text(size: number | undefined): string {
    const seconds = this.#seconds()
    const rate = this.#answered / seconds
    const left = this.#secondsLeft(seconds, size)
    return `${this.#counts()}, ${rate.toFixed(1)}/s${left === undefined ? '' : `, about ${clock(left)} left`}`
  }

  /**
   * The last line, for people.
   * @param cpuMs CPU time of everything since the start, in milliseconds; null if it is unknown.
   */
  summary(cpuMs: number | null): string {
    const seconds = this.#seconds()
    const rate = `${(this.#answered / seconds).toFixed(1)}/s`
    const cost = cpuMs === null || this.#answered === 0 ? '' : `, ${(cpuMs / this.#answered).toFixed(1)} ms CPU each`
    return `${this.#counts()} in ${clock(seconds)} (${rate}${cost})`
  }

  #counts(): string {
    const skipped = this.skipped === 0 ? '' : `, ${this.skipped} answered before`
    return `${this.#answered} answered, ${this.#failed} failed${skipped}`
  }

  #seconds(): number {
    return Math.max((performance.now() - this.#started) / 1000, 0.001)
  }

  /** An estimate: unread lines count as long as those already read. */
  #secondsLeft(seconds: number, size: number | undefined): number | undefined {
    if (this.#answered === 0 || this.#bytes === 0 || (size === undefined && !this.#atEnd)) return undefined
    const lines = this.#atEnd || size === undefined ? this.#lines : (size * this.#lines) / this.#bytes
    return (seconds / this.#answered) * Math.max(lines - this.#answered - this.skipped, 0)
  }
}

function clock(seconds: number): string {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}
