import { type AcceptanceCase, keysOf } from './case.ts'

/** Records the keys of a case that were evaluated. A key that was not evaluated is a defect of the driver. */
export class Ledger {
  readonly evaluated: string[] = []
  readonly #given: AcceptanceCase

  constructor(given: AcceptanceCase) {
    this.#given = given
  }

  add(key: string): void {
    this.evaluated.push(key)
  }

  /** The keys that were not evaluated; includes `assertion` when no key was evaluated at all. */
  missing(): string[] {
    const missing = wantedOf(this.#given).filter((key) => !this.evaluated.includes(key))
    return this.evaluated.length === 0 ? [...missing, 'assertion'] : missing
  }
}

/** Every key of a case; keys of its follow-up have the prefix `followup.`. */
function wantedOf({ check, followup }: AcceptanceCase): string[] {
  return [...keysOf(check), ...keysOf(followup?.check ?? {}).map((key) => `followup.${key}`)]
}
