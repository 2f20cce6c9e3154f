import { MAX_TIMER_MS } from './max-timer.ts'

/** Fires when no time is left. The time may grow meanwhile, so it is checked again after it has passed. */
export class Countdown {
  readonly #leftMs: () => number
  readonly #onEnd: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(leftMs: () => number, onEnd: () => void) {
    this.#leftMs = leftMs
    this.#onEnd = onEnd
    this.#check()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check(): void {
    const left = this.#leftMs()
    if (left <= 0) return this.#onEnd()
    this.#timer = setTimeout(() => this.#check(), Math.min(Math.ceil(left), MAX_TIMER_MS))
  }
}
