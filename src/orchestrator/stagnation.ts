import type { Repetition } from '../journal/index.ts'
import { sameData } from './equality.ts'

/** Detects a value that equals the previous one, or the one before that. */
export class Recurrence {
  #last: { readonly value: unknown } | undefined
  #before: { readonly value: unknown } | undefined

  /** Adds a value; returns which of the earlier ones it repeats. */
  add(value: unknown): 'same' | 'cycle' | null {
    const [last, before] = [this.#last, this.#before]
    this.#before = last
    this.#last = { value }
    if (last !== undefined && sameData(last.value, value)) return 'same'
    return before !== undefined && sameData(before.value, value) ? 'cycle' : null
  }
}

/**
 * Detects repetition in one task. Consecutive failures are compared with each other, successful steps with each other: an
 * error that returns after a success counts as new.
 */
export class Stagnation {
  #failedScripts = new Recurrence()
  #errors = new Recurrence()
  readonly #goodScripts = new Recurrence()
  readonly #results = new Recurrence()

  /**
   * Adds a failed attempt.
   * @param script null if the answer held none.
   * @param error its line numbers are ignored: an error that moved is the same error.
   */
  addFailure(script: string | null, error: string): Repetition | null {
    const ofScript = script === null ? null : toRepetition(this.#failedScripts.add(script.trim()), 'same-script')
    const ofError = toRepetition(this.#errors.add(error.replaceAll(/\bline \d+/g, 'line')), 'same-error')
    return ofScript ?? ofError
  }

  /** Adds a step that succeeded. A step in a session may emit nothing and only set variables. */
  addStep(script: string, emitted: readonly { readonly label: string; readonly data: unknown }[]): Repetition | null {
    this.#failedScripts = new Recurrence()
    this.#errors = new Recurrence()
    const ofResult = emitted.length === 0 ? null : toRepetition(this.#results.add(emitted), 'same-result')
    const ofScript = toRepetition(this.#goodScripts.add(script.trim()), 'same-script')
    return ofResult ?? ofScript
  }
}

function toRepetition(found: 'same' | 'cycle' | null, same: Repetition): Repetition | null {
  return found === 'same' ? same : found
}
