import type { Repetition } from '../journal/index.ts'
import { sameData } from './equality.ts'

/** Finds out that something comes again: at once, or every other time. */
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

/**
 * What repeats itself in one run (requirement OR-04). Failures are compared with failures in a row, and what went well
 * with what went well: a mistake that comes again much later is a new one.
 */
export class Stagnation {
  #failedScripts = new Recurrence()
  #errors = new Recurrence()
  readonly #goodScripts = new Recurrence()
  readonly #results = new Recurrence()

  /**
   * An attempt failed.
   * @param script null when the answer held none.
   * @param error line numbers in it do not count: a mistake that moved is the same.
   */
  failed(script: string | null, error: string): Repetition | null {
    const ofScript = script === null ? null : named(this.#failedScripts.next(script.trim()), 'same-script')
    const ofError = named(this.#errors.next(error.replaceAll(/\bline \d+/g, 'line')), 'same-error')
    return ofScript ?? ofError
  }

  /** A step brought something. */
  stepped(script: string, emitted: readonly { readonly label: string; readonly data: unknown }[]): Repetition | null {
    this.#failedScripts = new Recurrence()
    this.#errors = new Recurrence()
    const ofResult = named(this.#results.next(emitted), 'same-result')
    const ofScript = named(this.#goodScripts.next(script.trim()), 'same-script')
    return ofResult ?? ofScript
  }
}

function named(found: 'same' | 'cycle' | null, same: Repetition): Repetition | null {
  return found === 'same' ? same : found
}
