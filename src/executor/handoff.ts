/** Passes items from one producer to one consumer without a queue: the producer waits until each item is taken. */
export class Handoff<T> {
  #offer: { readonly item: T; readonly taken: () => void } | undefined
  #ask: ((item: T | undefined) => void) | undefined
  #ended = false
  #abandoned = false

  /** Resolves when the consumer took the item, or has stopped taking items. */
  put(item: T): Promise<void> {
    if (this.#abandoned) return Promise.resolve()
    if (this.#ask !== undefined) {
      this.#ask(item)
      this.#ask = undefined
      return Promise.resolve()
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#offer = { item, taken: resolve }
    return promise
  }

  /** The next item; undefined after the last. */
  take(): Promise<T | undefined> {
    if (this.#offer !== undefined) {
      const { item, taken } = this.#offer
      this.#offer = undefined
      taken()
      return Promise.resolve(item)
    }
    if (this.#ended) return Promise.resolve(undefined)
    const { promise, resolve } = Promise.withResolvers<T | undefined>()
    this.#ask = resolve
    return promise
  }

  /** The producer has ended. An item on offer can still be taken. */
  end(): void {
    this.#ended = true
    this.#ask?.(undefined)
    this.#ask = undefined
  }

  /** The consumer has left: the producer continues without waiting. */
  abandon(): void {
    this.#abandoned = true
    this.#offer?.taken()
    this.#offer = undefined
  }
}
