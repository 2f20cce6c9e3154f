/** Limits how many cases run at a time; a case can also run alone. */
export class Semaphore {
  readonly #width: number
  readonly #waiting: { size: number; enter: () => void }[] = []
  #free: number

  constructor(width: number) {
    this.#width = width
    this.#free = width
  }

  /** Waits for a free place, then runs `work`. Waiters are served in order; with `alone`, `work` takes all places. */
  async run<T>(alone: boolean, work: () => Promise<T>): Promise<T> {
    const size = alone ? this.#width : 1
    await new Promise<void>((enter) => {
      this.#waiting.push({ size, enter })
      this.#next()
    })
    try {
      return await work()
    } finally {
      this.#free += size
      this.#next()
    }
  }

  #next(): void {
    for (;;) {
      const first = this.#waiting[0]
      if (first === undefined || first.size > this.#free) return
      this.#waiting.shift()
      this.#free -= first.size
      first.enter()
    }
  }
}
