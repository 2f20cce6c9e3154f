import type { Redactor } from '../executor/index.ts'
import { type JournalBody, type JournalEvent, JOURNAL_VERSION } from './events.ts'
import type { JournalStore } from './store.ts'

/** What names something of the journal itself: no secret stands there, whatever its value is. */
const WORDS: ReadonlySet<string> = new Set(['type', 'mode', 'status', 'repetition'])
/** What users, scripts and tools fill: secrets may stand in its keys, too. */
const DATA: ReadonlySet<string> = new Set(['args', 'data', 'final_data', 'partial'])

/** The journal of one run: numbers its events, takes secrets out of them, and hands them to a store and a listener. */
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

  /** Writes an event. Never throws: what a store does not take is told by {@link settle}. */
  write(body: JournalBody): void {
    const event = {
      v: JOURNAL_VERSION,
      run_id: this.runId,
      seq: this.#events.length,
      at: new Date().toISOString(),
      ...this.#redacted(body),
    } as JournalEvent
    this.#events.push(event)
    this.#keep(event)
    try {
      this.#listener?.(event)
    } catch {
      // A listener looks on; what it throws is its own affair.
    }
  }

  /** Resolves when all is kept. @throws what the store threw first. */
  async settle(): Promise<void> {
    await this.#pending
    if (this.#failed) throw this.#failure
  }

  /** All that was written. */
  get events(): readonly JournalEvent[] {
    return this.#events
  }

  #redacted(body: JournalBody): Record<string, unknown> {
    const entries = Object.entries(body).map(([name, value]: [string, unknown]): [string, unknown] => {
      if (WORDS.has(name)) return [name, value]
      return [name, DATA.has(name) ? this.#redactor.value(value) : this.#fields(value)]
    })
    return Object.fromEntries(entries)
  }

  /** Values alone: the keys are those of the journal. */
  #fields(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return this.#redactor.value(value)
    if (Array.isArray(value)) return value.map((item: unknown) => this.#fields(item))
    return Object.fromEntries(Object.entries(value).map(([key, item]: [string, unknown]) => [key, this.#fields(item)]))
  }

  /** A store that has failed gets nothing more: a journal has no gaps. */
  #keep(event: JournalEvent): void {
    const keep = (): void | PromiseLike<void> => (this.#failed ? undefined : this.#store.append(event))
    const failed = (error: unknown): void => {
      if (!this.#failed) this.#failure = error
      this.#failed = true
    }
    if (this.#pending !== undefined) {
      this.#pending = this.#pending.then(keep).catch(failed)
      return
    }
    try {
      const kept: unknown = keep()
      if (isThenable(kept)) this.#pending = Promise.resolve(kept).then(() => undefined, failed)
    } catch (error) {
      failed(error)
    }
  }
}

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return typeof given === 'object' && given !== null && 'then' in given && typeof given.then === 'function'
}
