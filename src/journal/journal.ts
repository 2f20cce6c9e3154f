import type { Redactor } from '../redaction/index.ts'
import { type JournalBody, type JournalEvent, JOURNAL_VERSION } from './events.ts'
import type { JournalStore } from './store.ts'

/** Fields with text of users, models, scripts and tools. All other fields are written by the journal itself. */
const TEXTS: ReadonlySet<string> = new Set([
  'task',
  'trace_id',
  'text',
  'model',
  'script',
  'answer',
  'label',
  'level',
  'message',
  'error',
  'traceback',
  'stdout',
  'stderr',
  'result_json',
  'plan',
  'problem',
  'by',
])
/** Fields with data of the same origin, whose keys can also contain secrets. */
const DATA: ReadonlySet<string> = new Set(['args', 'data', 'final_data', 'partial'])
/** Fields with objects of the journal itself, and the members of these objects that hold foreign text. */
const FOREIGN_MEMBERS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['error', new Set(['code', 'message'])],
  ['violations', new Set(['message', 'hint'])],
  ['warnings', new Set(['message'])],
])

/** The journal of one task: numbers its events, redacts them, and passes them to a store and a listener. */
export class Journal {
  readonly runId: string
  readonly #store: JournalStore
  readonly #redactor: Redactor
  readonly #listener: ((event: JournalEvent) => void) | undefined
  readonly #events: JournalEvent[] = []
  #pending: Promise<void> | undefined
  #failed = false
  #failure: unknown

  constructor(
    runId: string,
    store: JournalStore,
    redactor: Redactor,
    listener: ((event: JournalEvent) => void) | undefined,
  ) {
    this.runId = runId
    this.#store = store
    this.#redactor = redactor
    this.#listener = listener
  }

  /** Writes an event. Never throws: {@link settle} reports errors of the store. */
  write(body: JournalBody): void {
    const event = {
      v: JOURNAL_VERSION,
      run_id: this.runId,
      seq: this.#events.length,
      at: new Date().toISOString(),
      ...this.#redact(body),
    } as JournalEvent
    this.#events.push(event)
    this.#keep(event)
    try {
      this.#listener?.(event)
    } catch {
      // A listener that throws does not affect the journal.
    }
  }

  /** Resolves when every event is stored. @throws the first error of the store. */
  async settle(): Promise<void> {
    await this.#pending
    if (this.#failed) throw this.#failure
  }

  /** All events so far. */
  get events(): readonly JournalEvent[] {
    return this.#events
  }

  #redact(body: JournalBody): Record<string, unknown> {
    const entries = Object.entries(body).map(([name, value]: [string, unknown]): [string, unknown] => {
      const members = FOREIGN_MEMBERS.get(name)
      if (members !== undefined && typeof value === 'object') return [name, this.#redactMembers(value, members)]
      return [name, TEXTS.has(name) || DATA.has(name) ? this.#redactor.value(value) : value]
    })
    return Object.fromEntries(entries)
  }

  #redactMembers(value: object | null, names: ReadonlySet<string>): unknown {
    if (value === null) return null
    if (Array.isArray(value)) return value.map((item: object | null) => this.#redactMembers(item, names))
    const entries = Object.entries(value).map(([name, item]: [string, unknown]): [string, unknown] => [
      name,
      names.has(name) ? this.#redactor.value(item) : item,
    ])
    return Object.fromEntries(entries)
  }

  /** Passes an event to the store. A store that failed gets no further events, so that a journal has no gaps. */
  #keep(event: JournalEvent): void {
    const keep = (): void | PromiseLike<void> => (this.#failed ? undefined : this.#store.append(event))
    const fail = (error: unknown): void => {
      if (!this.#failed) this.#failure = error
      this.#failed = true
    }
    if (this.#pending !== undefined) {
      this.#pending = this.#pending.then(keep).catch(fail)
      return
    }
    try {
      const kept: unknown = keep()
      if (isThenable(kept)) this.#pending = Promise.resolve(kept).then(() => undefined, fail)
    } catch (error) {
      fail(error)
    }
  }
}

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return typeof given === 'object' && given !== null && 'then' in given && typeof given.then === 'function'
}
