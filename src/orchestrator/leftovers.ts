/** The best of what there is beside an answer. */
export class Leftovers {
  #result: { readonly data: unknown } | undefined
  #collected: unknown = null
  #emitted: unknown = null

  /** A script gave a result that was not accepted. */
  keepResult(data: unknown): void {
    this.#result = { data }
  }

  /** What steps handed on so far. */
  keepCollected(items: readonly unknown[]): void {
    if (items.length > 0) this.#collected = [...items]
  }

  /** What a script emitted, whatever became of it. */
  keepEmitted(items: readonly unknown[]): void {
    if (items.length > 0) this.#emitted = [...items]
  }

  /** A result of another shape than asked goes before what steps handed on, and that before what a script emitted. */
  get best(): unknown {
    return this.#result === undefined ? (this.#collected ?? this.#emitted) : this.#result.data
  }
}
