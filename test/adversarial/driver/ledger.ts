import { type AcceptanceCase, keysOf } from './case.ts'

/** Which keys of a case were evaluated. A key that nobody evaluated is a defect of the driver. */
export class Ledger {
  readonly evaluated: string[] = []
  readonly #given: AcceptanceCase

  constructor(given: AcceptanceCase) {
    this.#given = given
  }

  add(key: string): void {
    this.evaluated.push(key)
  }

  /** The keys that nobody looked at; `assertion` when nothing at all was asserted. */
  missing(): string[] {
    const missing = wantedOf(this.#given).filter((key) => !this.evaluated.includes(key))
    return this.evaluated.length === 0 ? [...missing, 'assertion'] : missing
  }
}

/** Every key of a case, those of its follow-up with their own prefix. */
function wantedOf({ check, followup }: AcceptanceCase): string[] {
  return [...keysOf(check), ...keysOf(followup?.check ?? {}).map((key) => `followup.${key}`)]
}
