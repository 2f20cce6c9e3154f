/** Numbers that a seed decides. */
export interface Random {
  /** From 0, below 1. */
  next(): number
  /** A whole number from 0, below `limit`. */
  below(limit: number): number
}

/** Mulberry32: 32 bits of state are enough to choose scripts by. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { next, below: (limit) => Math.floor(next() * limit) }
}
