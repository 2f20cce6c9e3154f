import {
  boundArgs,
  type CellEnd,
  type Display,
  type ExecutionResult,
  MAX_LISTED_CALLS,
  type RunEvent,
} from '../executor/index.ts'
import type { Redactor } from '../redaction/index.ts'
import type { Journal, JournalBody, Place } from '../journal/index.ts'
import { CallKeys } from './call-keys.ts'

/** Maximum characters of a tool's answer in the journal. */
const MAX_RESULT = 16 * 1024

/** Maximum characters of one display in the journal, and of all displays of a script. */
const MAX_DISPLAY = 1024 * 1024
const MAX_DISPLAYS = 4 * 1024 * 1024

/** A call that waits for a person, as the journal records it. */
type AskedCall = Pick<Extract<JournalBody, { type: 'approval_requested' }>, 'approval_id' | 'name' | 'effect' | 'args'>

/** Records the events of one running script in the journal. */
export class ScriptNotes {
  readonly #journal: Journal
  readonly #place: Place
  readonly #redactor: Redactor
  readonly #keys: CallKeys = new CallKeys()
  #unlisted = 0
  #displayChars = 0
  /** Calls beyond the listed ones that wait for approval. */
  readonly #askedUnlisted = new Map<string, AskedCall>()

  constructor(journal: Journal, place: Place, redactor: Redactor) {
    this.#journal = journal
    this.#place = place
    this.#redactor = redactor
  }

  /** Tool calls so far. */
  get calls(): number {
    return this.#keys.count + this.#unlisted
  }

  /** Records an event of the run. */
  take(event: RunEvent): void {
    const place = this.#place
    switch (event.type) {
      case 'intermediate':
        this.#journal.write({ type: 'intermediate', ...place, label: event.label, data: event.data })
        return
      case 'display':
        this.#takeDisplay(event)
        return
      case 'log':
        this.#journal.write({ type: 'log', ...place, level: event.level, message: event.message })
        return
      case 'tool_call': {
        const { callId, name, effect, args, line } = event
        if (this.calls >= MAX_LISTED_CALLS) {
          this.#unlisted += 1
          return
        }
        const key = this.#keys.start(callId, name, line)
        this.#journal.write({ type: 'tool_called', ...place, key, line, name, effect, args: sortKeys(boundArgs(args)) })
        return
      }
      case 'approval_requested': {
        const { approvalId: approval_id, name, effect, args } = event
        const asked = { approval_id, name, effect, args: sortKeys(boundArgs(args)) }
        const key = this.#keys.keyOf(event.callId)
        if (key === undefined) this.#askedUnlisted.set(event.callId, asked)
        else this.#journal.write({ type: 'approval_requested', ...place, key, ...asked })
        return
      }
      case 'approval_decided': {
        const { approvalId: approval_id, name, approved, reason, by, args, waitedMs: waited_ms } = event
        if (approved) this.#recordApproved(event.callId)
        this.#askedUnlisted.delete(event.callId)
        const key = this.#keys.keyOf(event.callId)
        if (key === undefined) return
        const decision = { approved, reason, by, args: sortKeys(boundArgs(args)), waited_ms }
        this.#journal.write({ type: 'approval_decided', ...place, approval_id, key, name, ...decision })
        return
      }
      case 'tool_result': {
        const { name, ok, ms, error, resultJson } = event
        const key = this.#keys.end(event.callId)
        if (key === undefined) return
        this.#journal.write({
          type: 'tool_answered',
          ...place,
          key,
          name,
          ok,
          ms,
          error,
          result_json: resultJson === null ? null : this.#headOf(resultJson),
          result_chars: resultJson?.length ?? 0,
        })
        return
      }
      default:
    }
  }

  /** Records a display without the parts that are too large for a journal, the largest first. */
  #takeDisplay({ data: given, leftOut }: Pick<Display, 'data' | 'leftOut'>): void {
    const room = Math.min(MAX_DISPLAY, MAX_DISPLAYS - this.#displayChars)
    const data: Record<string, string> = {}
    const left_out = [...leftOut]
    let chars = 0
    for (const [type, content] of Object.entries(given).toSorted(([, a], [, b]) => a.length - b.length)) {
      if (chars + content.length > room) {
        left_out.push(type)
        continue
      }
      data[type] = content
      chars += content.length
    }
    this.#displayChars += chars
    this.#journal.write({ type: 'display', ...this.#place, data, left_out })
  }

  /** Records an approved call beyond the limit, so that a script cannot hide it behind other calls. */
  #recordApproved(callId: string): void {
    const asked = this.#askedUnlisted.get(callId)
    if (asked === undefined) return
    this.#unlisted -= 1
    const key = this.#keys.start(callId, asked.name, null)
    const { name, effect, args } = asked
    this.#journal.write({ type: 'tool_called', ...this.#place, key, line: null, name, effect, args })
    this.#journal.write({ type: 'approval_requested', ...this.#place, key, ...asked })
  }

  /** The head of an answer as a copy, because a slice would keep the whole answer in memory. */
  #headOf(resultJson: string): string {
    const head = Buffer.from(resultJson.slice(0, MAX_RESULT), 'utf16le').toString('utf16le')
    // The cut may split a secret: `head` removes the partial one.
    return this.#redactor.head(head, MAX_RESULT)
  }

  /** Records the result. @param cell present for a script that ran in a session. */
  end(result: ExecutionResult, cell?: { readonly number: number; readonly state: CellEnd['state'] }): void {
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
      files: result.files.map(({ path, size, sha256, holdsSecret }) => ({
        path,
        size,
        sha256: holdsSecret === true ? null : sha256,
      })),
      tool_calls: this.calls,
      ...(cell === undefined ? {} : { cell }),
      duration_ms: result.durationMs,
      sandbox: { id, engine, level, python, use, limits_enforced: limitsEnforced, network },
      ending: { cause: ending.cause, exit_code: ending.exitCode, signal: ending.signal },
    })
  }
}

/** A JSON value with sorted keys, so that equal arguments have the same text. */
function sortKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sortKeys)
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sortKeys(item)]),
  )
}
