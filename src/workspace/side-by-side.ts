/** Pieces of work that go on at the same time, up to a number. A failure is thrown to who adds the next piece, or waits. */
export class SideBySide {
  readonly #most: number
  readonly #unfinished = new Set<Promise<void>>()
  #failure: { readonly error: unknown } | undefined

  constructor(most: number) {
    this.#most = most
  }

  /** Takes a piece that has begun, and waits until there is room for another one. @throws what a piece threw. */
  async add(piece: Promise<void>): Promise<void> {
    const ended = piece
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#unfinished.delete(ended))
    this.#unfinished.add(ended)
    if (this.#unfinished.size >= this.#most) await Promise.race(this.#unfinished)
    this.#throwFailure()
  }

  /** Resolves when all of them are done. @throws what a piece threw. */
  async done(): Promise<void> {
    await this.settled()
    this.#throwFailure()
  }

  /** The same, whether they failed or not. */
  async settled(): Promise<void> {
    await Promise.all(this.#unfinished)
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }
}
