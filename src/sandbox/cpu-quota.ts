/**
 * Owns the CPU limit of one sandbox. The lowest one applies: that of its spec, or one of a run or program under way. A lift
 * suspends them all.
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
   * @param limit CPU time per wall time, which is in force.
   * @param write sets it; null for no limit. Called once at a time.
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

  /** Lowers the limit until the returned object is disposed of. Rejects when it could not be set, and disposing as above. */
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

  /** Writes follow each other, so that the latest limit is in force at the end. */
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
