/** Random choices that a seed repeats. */
export interface Random {
  /** From 0 to below 1. */
  next(): number
  pick<T>(from: readonly T[]): T
  shuffled<T>(list: readonly T[]): T[]
}

/** Mulberry32: small, and the same on every machine. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    pick(from) {
      const chosen = from[Math.floor(next() * from.length)]
      if (chosen === undefined) throw new Error('nothing to pick from')
      return chosen
    },
    shuffled(list) {
      const mixed = [...list]
      for (let last = mixed.length - 1; last > 0; last -= 1) {
        const other = Math.floor(next() * (last + 1))
        ;[mixed[last], mixed[other]] = [mixed[other], mixed[last]] as [(typeof mixed)[0], (typeof mixed)[0]]
      }
      return mixed
    },
  }
}
