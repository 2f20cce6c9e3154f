import { Departure, type Parting } from './parting.ts'

/**
 * Lets timers and signals end whatever a conversation waits for. One waiter at a time; unlike `Promise.race` against a
 * promise that lives as long as the run, it leaves nothing behind for each wait.
 */
export class Interrupt {
  #parting: Parting | undefined
  #wake: ((departure: Departure) => void) | undefined

  /** Ends the present wait and every later one. The first reason stands. */
  fire(parting: Parting): void {
    if (this.#parting !== undefined) return
    this.#parting = parting
    this.#wake?.(new Departure(parting))
  }

  /**
   * The outcome of some work, unless interrupted.
   * @throws Departure
   */
  async wait<T>(work: PromiseLike<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    // Attached first: work that fails after an interruption must not become an unhandled rejection.
    work.then(resolve, reject)
    if (this.#parting !== undefined) reject(new Departure(this.#parting))
    this.#wake = reject
    try {
      return await promise
    } finally {
      this.#wake = undefined
    }
  }
}
