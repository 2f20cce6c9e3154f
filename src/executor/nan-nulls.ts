import { CAPS, type NanAsNull } from '../protocol/index.ts'
import type { Redactor } from '../redaction/index.ts'

/** The NaNs of a run that became null. Only the first places are kept: a script may emit millions. */
export class NanNulls {
  readonly #redactor: Redactor
  readonly #places: string[] = []
  #count = 0

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** @param where the name of the data, without secrets. */
  take(where: string, nulls: NanAsNull | undefined): void {
    if (nulls === undefined) return
    this.#count += nulls.count
    const room = CAPS.nullPaths - this.#places.length
    for (const path of nulls.paths.slice(0, room)) {
      this.#places.push(`${this.#redactor.head(path.slice(0, CAPS.path), CAPS.path)} of ${where}`)
    }
  }

  /** The number and the first places, or undefined if there are none. */
  get message(): string | undefined {
    if (this.#count === 0) return undefined
    const more = this.#count - this.#places.length
    const places = more > 0 ? [...this.#places, `${more} more`] : this.#places
    return `${this.#count} NaN became null: ${places.join(', ')}`
  }
}
