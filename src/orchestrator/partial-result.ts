/** Keeps the best data of a task for the case that it ends without an answer. */
export class PartialResult {
  #result: { readonly data: unknown } | undefined
  #collected: unknown = null
  #emitted: unknown = null

  /** Keeps the latest result of a script, accepted or not. */
  keepResult(data: unknown): void {
    this.#result = { data }
  }

  /** Keeps the data that steps have collected so far. */
  keepCollected(items: readonly unknown[]): void {
    if (items.length > 0) this.#collected = [...items]
  }

  /** Keeps the data that a script emitted, even if the script failed. */
  keepEmitted(items: readonly unknown[]): void {
    if (items.length > 0) this.#emitted = [...items]
  }

  /** The latest result, else the data that steps collected, else the data of the last script that emitted any. */
  get best(): unknown {
    return this.#result === undefined ? (this.#collected ?? this.#emitted) : this.#result.data
  }
}
