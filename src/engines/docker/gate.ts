import { SandglassError } from '../../errors/index.ts'

/** Lets so many in at a time; the others wait in order. */
export class Gate {
  readonly #places: number
  readonly #waiting = new Set<() => void>()
  #inside = 0

  constructor(places: number) {
    this.#places = places
  }

  /**
   * Does the work when there is a place.
   * @throws SandglassError `aborted` when the signal fires before.
   */
  async pass<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#inside >= this.#places) await this.#turn(signal)
    else this.#inside += 1
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  /** Whoever leaves hands its place on, so that nobody slips in between. */
  #leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#inside -= 1
    else next()
  }

  #turn(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(enter)
        reject(new SandglassError('aborted', 'aborted while a container waited for its turn to start'))
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
