import type { Repetition } from '../journal/index.ts'
import { sameData } from './equality.ts'

/** Finds out that a run does not get on (requirement OR-04): a value that comes again at once, or every other time. */
export class Recurrence {
  #last: { readonly value: unknown } | undefined
  #before: { readonly value: unknown } | undefined

  /** Takes the next value; what of the earlier ones it repeats. */
  next(value: unknown): 'same' | 'cycle' | null {
    const [last, before] = [this.#last, this.#before]
    this.#before = last
    this.#last = { value }
    if (last !== undefined && sameData(last.value, value)) return 'same'
    return before !== undefined && sameData(before.value, value) ? 'cycle' : null
  }
}

/** What repeats itself in the attempts of one run. */
export class Stagnation {
  readonly #scripts = new Recurrence()
  readonly #errors = new Recurrence()
  readonly #results = new Recurrence()

  /** A script was written. */
  script(source: string): Repetition | null {
    return named(this.#scripts.next(source.trim()), 'same-script')
  }

  /** An attempt failed. Line numbers do not count: a mistake that moved is the same. */
  error(message: string): Repetition | null {
    return named(this.#errors.next(message.replaceAll(/\bline \d+/g, 'line')), 'same-error')
  }

  /** A step brought something. */
  result(emitted: readonly { readonly label: string; readonly data: unknown }[]): Repetition | null {
    return named(this.#results.next(emitted), 'same-result')
  }
}

function named(found: 'same' | 'cycle' | null, same: Repetition): Repetition | null {
  return found === 'same' ? same : found
}
