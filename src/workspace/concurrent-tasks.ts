/** Runs a limited number of tasks concurrently. The next call of `add` or `awaitDone` throws the first failure. */
export class ConcurrentTasks {
  readonly #max: number
  readonly #unfinished = new Set<Promise<void>>()
  #failure: { readonly error: unknown } | undefined

  constructor(max: number) {
    this.#max = max
  }

  /** Adds a started task, and waits until another one may start. @throws the first failure. */
  async add(task: Promise<void>): Promise<void> {
    const ended = task
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#unfinished.delete(ended))
    this.#unfinished.add(ended)
    if (this.#unfinished.size >= this.#max) await Promise.race(this.#unfinished)
    this.#throwFailure()
  }

  /** Resolves when all tasks are done. @throws the first failure. */
  async awaitDone(): Promise<void> {
    await this.awaitSettled()
    this.#throwFailure()
  }

  /** Resolves when all tasks have settled, also if some failed. */
  async awaitSettled(): Promise<void> {
    await Promise.all(this.#unfinished)
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }
}
