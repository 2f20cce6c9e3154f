/** A pseudorandom generator (mulberry32) with a seed, so that any case can be reproduced. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** The generator of one case: cases of a seed do not depend on one another. */
  static ofCase(seed: number, side: string, number: number): Random {
    let hash = 0x811c9dc5
    for (const char of `${seed}/${side}/${number}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
    return new Random(hash)
  }

  /** The next 32 bits. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** From 0, below 1. */
  fraction(): number {
    return this.next() / 2 ** 32
  }

  /** A whole number from 0 to `bound - 1`. */
  below(bound: number): number {
    return Math.floor(this.fraction() * bound)
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** True with the probability 1 / `count`. */
  oneIn(count: number): boolean {
    return this.below(count) === 0
  }

  /** A random item of a non-empty list. */
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  /** The list in random order. */
  shuffled<T>(list: readonly T[]): T[] {
    const mixed = [...list]
    for (let last = mixed.length - 1; last > 0; last -= 1) {
      const other = this.below(last + 1)
      ;[mixed[last], mixed[other]] = [mixed[other] as T, mixed[last] as T]
    }
    return mixed
  }

  /** Random bytes. */
  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }
}
