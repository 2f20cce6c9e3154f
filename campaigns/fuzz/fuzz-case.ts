import type { Random } from '../../test/support/random.ts'

/** One input and what must hold for it. */
export interface FuzzCase {
  /** The property in words; cases are counted by it. */
  readonly property: string
  /** The input, in pieces. */
  readonly pieces: readonly Uint8Array[]
  /** @throws Error when the property does not hold. */
  check(): void | Promise<void>
}

/** Makes cases of one kind, each from its own random numbers alone. */
export type CaseMaker = (random: Random) => FuzzCase
