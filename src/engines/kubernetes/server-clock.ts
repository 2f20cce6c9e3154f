/**
 * The clock of the API server, by the dates of its answers. Hosts write the times of their leases by it and judge others by it, so it does
 * not matter what their own clocks say.
 */
export class ServerClock {
  #startMs: number | undefined

  /** Takes the header `Date` of an answer, which has whole seconds. */
  note(date: string | undefined): void {
    const timeMs = Date.parse(date ?? '')
    if (Number.isFinite(timeMs)) this.#startMs = timeMs + 500 - performance.now()
  }

  /** Milliseconds since 1970; by the clock of this machine before the first answer. */
  now(): number {
    return this.#startMs === undefined ? Date.now() : this.#startMs + performance.now()
  }
}
