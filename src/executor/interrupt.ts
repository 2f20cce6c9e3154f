import { EndConversation, type ConversationEnd } from './conversation-end.ts'

/**
 * Lets timers and signals end any wait of a conversation. One waiter at a time; unlike `Promise.race` against a
 * promise that lives as long as the run, it does not accumulate a reaction per wait.
 */
export class Interrupt {
  #end: ConversationEnd | undefined
  #wake: ((end: EndConversation) => void) | undefined

  /** Ends the current wait and every later one. The first reason is kept. */
  fire(end: ConversationEnd): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#wake?.(new EndConversation(end))
  }

  /**
   * Waits for some work until it settles or the interrupt fires.
   * @throws EndConversation
   */
  async wait<T>(work: PromiseLike<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    // Attached first: work that fails after an interruption must not become an unhandled rejection.
    work.then(resolve, reject)
    if (this.#end !== undefined) reject(new EndConversation(this.#end))
    this.#wake = reject
    try {
      return await promise
    } finally {
      this.#wake = undefined
    }
  }
}
