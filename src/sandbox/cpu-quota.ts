/**
 * Owns the CPU limit of one sandbox. The lowest one applies: that of its spec, or one of a run or program in progress. A lift
 * suspends all of them.
 */
export class CpuQuota {
  readonly #limit: number
  readonly #write: (cpus: number | null) => Promise<void>
  readonly #lowered = new Set<{ readonly cpus: number }>()
  #lifts = 0
  /** The limit that was written last; null for none, undefined if that is not known. */
  #inForce: number | null | undefined
  #writing: Promise<void> = Promise.resolve()

  /**
   * @param limit CPU time per wall time. It must already be in force.
   * @param write sets the limit; null for no limit. Never called concurrently.
   */
  constructor(limit: number, write: (cpus: number | null) => Promise<void>) {
    this.#limit = limit
    this.#inForce = limit
    this.#write = write
  }

  /**
   * Lifts the limit until every returned object is disposed of. If it cannot be lifted, it stays in force. Disposing rejects
   * when the limit could not be restored.
   */
  lift(): AsyncDisposable {
    this.#lifts += 1
    this.#apply().catch(() => undefined)
    return disposeOnce(() => {
      this.#lifts -= 1
      return this.#apply()
    })
  }

  /**
   * Lowers the limit until the returned object is disposed of. Rejects when the limit could not be set. Disposing rejects when
   * it could not be restored.
   */
  async lower(cpus: number): Promise<AsyncDisposable> {
    const entry = { cpus }
    this.#lowered.add(entry)
    const lowered = disposeOnce(() => {
      this.#lowered.delete(entry)
      return this.#apply()
    })
    try {
      await this.#apply()
      return lowered
    } catch (error) {
      lowered[Symbol.asyncDispose]().then(undefined, () => undefined)
      throw error
    }
  }

  /** Writes are serialised, so that the latest limit is in force at the end. */
  #apply(): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#set())
    return this.#writing
  }

  async #set(): Promise<void> {
    const lowered = [...this.#lowered].map(({ cpus }) => cpus)
    const wanted = this.#lifts > 0 ? null : Math.min(this.#limit, ...lowered)
    if (wanted === this.#inForce) return
    this.#inForce = undefined
    await this.#write(wanted)
    this.#inForce = wanted
  }
}

function disposeOnce(act: () => Promise<void>): AsyncDisposable {
  let isOver = false
  return {
    async [Symbol.asyncDispose]() {
      if (isOver) return
      isOver = true
      await act()
    },
  }
}
