import { SandglassError } from '../errors/index.ts'

/** Limits the number of concurrent tasks; the others wait in order. */
export class Semaphore {
  readonly #places: number
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(places: number) {
    this.#places = places
  }

  /**
   * Runs the work as soon as a place is free.
   * @throws SandglassError `aborted` when the signal fires before.
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#running >= this.#places) await this.#waitForPlace(signal)
    else this.#running += 1
    try {
      return await work()
    } finally {
      this.#release()
    }
  }

  /** Passes the place of a finished task to the next waiting one, so that no later task takes it. */
  #release(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#running -= 1
    else next()
  }

  #waitForPlace(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(enter)
        reject(new SandglassError('aborted', 'aborted while a sandbox waited for its turn to start'))
      }
      const enter = (): void => {
        this.#waiting.delete(enter)
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      this.#waiting.add(enter)
      signal?.addEventListener('abort', onAbort, { once: true })
      if (signal?.aborted === true) onAbort()
    })
  }
}
