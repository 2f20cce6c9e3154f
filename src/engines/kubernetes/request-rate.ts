/** Requests that may be sent at once after a quiet time, and then in each second: at most twice as many in any one second. */
const REQUESTS = 40
const PAUSE_MS = 1000 / REQUESTS

/** Bounds how often one engine asks the API server, however many pods start and end: requests beyond the rate wait in order. */
export class RequestRate {
  #free = REQUESTS
  #countedMs = performance.now()
  #last: Promise<void> = Promise.resolve()

  /** Resolves when the next request may be sent. Never rejects. */
  turn(): Promise<void> {
    return (this.#last = this.#last.then(() => this.#take()))
  }

  async #take(): Promise<void> {
    for (this.#count(); this.#free < 1; this.#count()) {
      const waitMs = (1 - this.#free) * PAUSE_MS
      await new Promise((resolve) => {
        setTimeout(resolve, waitMs)
      })
    }
    this.#free -= 1
  }

  #count(): void {
    const nowMs = performance.now()
    this.#free = Math.min(REQUESTS, this.#free + (nowMs - this.#countedMs) / PAUSE_MS)
    this.#countedMs = nowMs
  }
}
