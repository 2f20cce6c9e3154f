/** Runs a limited number of tasks concurrently. The next call of `add` or `awaitDone` throws the first failure. */
export class ConcurrentTasks {
  readonly #most: number
  readonly #unfinished = new Set<Promise<void>>()
  #failure: { readonly error: unknown } | undefined

  constructor(most: number) {
    this.#most = most
  }

  /** Adds a task that has begun, and waits until there is room for another one. @throws the first failure. */
  async add(task: Promise<void>): Promise<void> {
    const ended = task
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#unfinished.delete(ended))
    this.#unfinished.add(ended)
    if (this.#unfinished.size >= this.#most) await Promise.race(this.#unfinished)
    this.#throwFailure()
  }

  /** Resolves when all tasks are done. @throws the first failure. */
  async awaitDone(): Promise<void> {
    await this.awaitSettled()
    this.#throwFailure()
  }

  /** Resolves when all tasks have ended, also if some failed. */
  async awaitSettled(): Promise<void> {
    await Promise.all(this.#unfinished)
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }
}
