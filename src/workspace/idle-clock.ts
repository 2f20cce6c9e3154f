/** Reports that a workspace has not been used for some time. */
export class IdleClock {
  readonly #idleMs: number | undefined
  readonly #onIdle: () => void
  #uses = 0
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  /**
   * @param idleMs time without use after which `onIdle` is called, once; undefined: never.
   */
  constructor(idleMs: number | undefined, onIdle: () => void) {
    this.#idleMs = idleMs
    this.#onIdle = onIdle
    this.#begin()
  }

  /** Begins a use, which ends when the result is disposed of. */
  use(): Disposable {
    this.#uses += 1
    clearTimeout(this.#timer)
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        this.#uses -= 1
        if (this.#uses === 0) this.#begin()
      },
    }
  }

  /** Restarts the idle time after a momentary use. */
  touch(): void {
    if (this.#uses === 0 && !this.#isStopped) this.#timer?.refresh()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #begin(): void {
    if (this.#idleMs === undefined || this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.stop()
      this.#onIdle()
    }, this.#idleMs)
    // The timer alone does not keep the host alive: the workspace ends with the host.
    this.#timer.unref()
  }
}
