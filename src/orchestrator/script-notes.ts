import type { ExecutionResult, Redactor, RunEvent } from '../executor/index.ts'
import type { Journal, Place } from '../journal/index.ts'
import { CallKeys } from './call-keys.ts'

/** How much of a tool's answer is kept. */
const RESULT_KEPT = 16 * 1024

/** Writes down what one script does while it runs. */
export class ScriptNotes {
  readonly #journal: Journal
  readonly #place: Place
  readonly #redactor: Redactor
  readonly #keys: CallKeys = new CallKeys()

  constructor(journal: Journal, place: Place, redactor: Redactor) {
    this.#journal = journal
    this.#place = place
    this.#redactor = redactor
  }

  /** Tool calls so far. */
  get calls(): number {
    return this.#keys.count
  }

  /** Something happened. */
  take(event: RunEvent): void {
    const place = this.#place
    switch (event.type) {
      case 'intermediate':
        this.#journal.write({ type: 'intermediate', ...place, label: event.label, data: event.data })
        return
      case 'log':
        this.#journal.write({ type: 'log', ...place, level: event.level, message: event.message })
        return
      case 'tool_call': {
        const { callId, name, effect, args, line } = event
        const key = this.#keys.began(callId, name, line)
        this.#journal.write({ type: 'tool_called', ...place, key, line, name, effect, args: inOrder(args) })
        return
      }
      case 'tool_result': {
        const { name, ok, ms, error, resultJson } = event
        const key = this.#keys.ended(event.callId)
        this.#journal.write({
          type: 'tool_answered',
          ...place,
          key,
          name,
          ok,
          ms,
          error,
          // What is cut may end in the middle of a secret.
          result_json: resultJson === null ? null : this.#redactor.head(resultJson.slice(0, RESULT_KEPT), RESULT_KEPT),
          result_chars: resultJson?.length ?? 0,
        })
        return
      }
      default:
    }
  }

  /** It came to its end. */
  end(result: ExecutionResult): void {
    const { status, error, traceback, stdout, stderr, ending } = result
    const { id, engine, level, python, use, limitsEnforced, network } = result.sandbox
    this.#journal.write({
      type: 'script_executed',
      ...this.#place,
      status,
      error,
      traceback,
      stdout,
      stderr,
      error_kind: result.errorKind,
      has_result: result.hasResult,
      final_data: result.finalData,
      warnings: result.warnings.map(({ code, message }) => ({ code, message })),
      tool_calls: this.calls,
      duration_ms: result.durationMs,
      sandbox: { id, engine, level, python, use, limits_enforced: limitsEnforced, network },
      ending: { cause: ending.cause, exit_code: ending.exitCode, signal: ending.signal },
    })
  }
}

/** A JSON value with the keys of each object in order: equal arguments look equal. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(inOrder)
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, inOrder(item)]),
  )
}
