import { CAPS, type NanAsNull } from '../protocol/index.ts'
import type { Redactor } from '../redaction/index.ts'

/** The NaN values of a run that were converted to null. Only the first places are kept: a script may emit millions. */
export class NanNulls {
  readonly #redactor: Redactor
  readonly #places: string[] = []
  #count = 0

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /**
   * Adds the NaN values of some data.
   * @param source the name of the data, without secrets.
   */
  add(source: string, nulls: NanAsNull | undefined): void {
    if (nulls === undefined) return
    this.#count += nulls.count
    const room = CAPS.nullPaths - this.#places.length
    for (const path of nulls.paths.slice(0, room)) {
      this.#places.push(`${this.#redactor.head(path.slice(0, CAPS.path), CAPS.path)} of ${source}`)
    }
  }

  /** The warning, with the number and the first places, or undefined if there are none. */
  get message(): string | undefined {
    if (this.#count === 0) return undefined
    const more = this.#count - this.#places.length
    const places = more > 0 ? [...this.#places, `${more} more`] : this.#places
    const what = this.#count === 1 ? '1 NaN value was' : `${this.#count} NaN values were`
    return `${what} converted to null: ${places.join(', ')}`
  }
}
