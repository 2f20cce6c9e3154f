import type { Random } from '../../test/support/random.ts'

/** One input and what must hold for it. */
export interface FuzzCase {
  /** The property in words, for the count of each. */
  readonly property: string
  /** The input, in the pieces in which it is given. */
  readonly pieces: readonly Uint8Array[]
  /** @throws Error when the property does not hold. */
  check(): void | Promise<void>
}

/** Makes cases of one kind, each from its own random numbers alone. */
export type CaseMaker = (random: Random) => FuzzCase
