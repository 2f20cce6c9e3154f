/** Maximum number of parked leases of a pool: each holds the memory of a sandbox. */
const MAX_PARKED = 32

/** Counts the parked leases of a pool, over all specs. */
export class Parking {
  #count = 0

  get isFull(): boolean {
    return this.#count >= MAX_PARKED
  }

  /** Counts one more lease. Call the returned function once, when the lease is no longer parked. */
  enter(): () => void {
    this.#count += 1
    return () => void (this.#count -= 1)
  }
}
