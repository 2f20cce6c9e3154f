import { type BackOff, makeBackOff } from './back-off.ts'
import type { Counters } from './stats.ts'
import type { Stock } from './stock.ts'

/**
 * Keeps a shelf filled up to its size in the background, where a late sandbox counts as already gone. After a failed creation it
 * waits before it tries again.
 */
export class Refill {
  readonly #stock: Stock
  readonly #poolSize: number
  /** Maximum number of sandboxes. */
  readonly #capacity: number
  readonly #counters: Counters
  readonly #backOff: BackOff
  /** Calls of `prewarm` that wait for a full shelf. */
  readonly #prewarmers = new Set<PromiseWithResolvers<void>>()
  #active = false
  #lastError: unknown

  /** @param retry is called when the delay is over. */
  constructor(stock: Stock, poolSize: number, capacity: number, counters: Counters, retry: () => void) {
    this.#stock = stock
    this.#poolSize = poolSize
    this.#capacity = capacity
    this.#counters = counters
    this.#backOff = makeBackOff(retry)
  }

  /** The last failure of the engine; undefined while it works. */
  get lastError(): unknown {
    return this.#lastError
  }

  /** Starts to keep the shelf full. */
  activate(): void {
    this.#active = true
  }

  /** Stops starting sandboxes in the background. Calls of `prewarm` then have nothing to wait for. */
  deactivate(): void {
    this.#active = false
    this.#resolvePrewarmers()
  }

  /** Fills the shelf without waiting for the next retry. The caller must call {@link run} afterwards. */
  prewarm(): Promise<void> {
    const ready = Promise.withResolvers<void>()
    this.#prewarmers.add(ready)
    this.#active = true
    this.#backOff.cancel()
    return ready.promise
  }

  /** Starts the missing sandboxes. */
  run(): void {
    if (this.#active && !this.#backOff.pending) {
      while (this.#isShort()) {
        this.#counters.refills += 1
        this.#stock.start(null)
      }
    }
    if (this.#stock.size >= this.#poolSize) this.#resolvePrewarmers()
  }

  #isShort(): boolean {
    const stock = this.#stock
    return stock.count(false) + stock.starting < this.#poolSize && stock.size + stock.starting < this.#capacity
  }

  /** Forgets the last failure after a successful creation. */
  noteMade(): void {
    this.#lastError = undefined
  }

  /** Resets the delay between retries after a sandbox was used. */
  noteUse(): void {
    this.#backOff.noteSuccess()
  }

  /** Delays the next refill after a failed creation, and rejects the calls that wait for a full shelf. */
  noteFailure(error: unknown): void {
    this.#lastError = error
    this.#backOff.noteFailure()
    this.#rejectPrewarmers(error)
  }

  /** Records that a sandbox could not be ended. */
  noteEndFailure(error: unknown): void {
    this.#lastError = error
  }

  /** Cancels the scheduled retry and rejects the calls that wait for a full shelf. */
  close(reason: unknown): void {
    this.#backOff.cancel()
    this.#rejectPrewarmers(reason)
  }

  #resolvePrewarmers(): void {
    for (const prewarmer of this.#prewarmers) prewarmer.resolve()
    this.#prewarmers.clear()
  }

  #rejectPrewarmers(reason: unknown): void {
    for (const prewarmer of this.#prewarmers) prewarmer.reject(reason)
    this.#prewarmers.clear()
  }
}
