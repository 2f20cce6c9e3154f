import type { JournalEvent } from '../journal/index.ts'

/** The kinds of activity in an attempt. */
export type SpanKind = 'model' | 'check' | 'review' | 'run' | 'call'

/** One stretch of time, in milliseconds since the task began. */
export interface Span {
  readonly kind: SpanKind
  readonly from: number
  readonly ms: number
  /** The tool of a call. */
  readonly name: string | null
}

/** The spans of an attempt, in the order in which they began. */
export interface TimelineRow {
  readonly step: number | null
  readonly attempt: number
  readonly spans: readonly Span[]
}

/** The time of a task, by attempt and activity. */
export interface Timeline {
  readonly totalMs: number
  readonly rows: readonly TimelineRow[]
}

/** Builds the timeline from the events of a task. A span without an end lasts until the last event. */
export function timelineOf(events: readonly JournalEvent[]): Timeline {
  const times = events.map(({ at }) => Date.parse(at)).filter((time) => !Number.isNaN(time))
  const start = times[0] ?? 0
  const end = times.reduce((last, time) => Math.max(last, time), start)
  const rows = new Map<string, Row>()
  for (const event of events) {
    const at = Date.parse(event.at) - start
    if (!('attempt' in event) || Number.isNaN(at)) continue
    const key = `${event.step}/${event.attempt}`
    const row = rows.get(key) ?? new Row(event.step, event.attempt)
    rows.set(key, row)
    row.take(event, Math.max(0, at))
  }
  return { totalMs: end - start, rows: [...rows.values()].map((row) => row.finish(end - start)) }
}

type PlacedEvent = Extract<JournalEvent, { readonly attempt: number }>

class Row {
  readonly #step: number | null
  readonly #attempt: number
  readonly #open = new Map<string, { kind: SpanKind; from: number; name: string | null }>()
  readonly #spans: Span[] = []

  constructor(step: number | null, attempt: number) {
    this.#step = step
    this.#attempt = attempt
  }

  take(event: PlacedEvent, at: number): void {
    switch (event.type) {
      case 'prompt_written':
        this.#begin('model', at)
        return
      case 'script_generated':
        this.#end('model', at)
        if (event.script !== null) this.#begin('check', at)
        return
      case 'script_checked':
        this.#end('check', at)
        return
      case 'script_proposed':
        this.#end('check', at)
        this.#begin('review', at)
        return
      case 'proposal_decided':
        this.#end('review', at)
        return
      case 'sandbox_assigned':
        // Without a policy nothing is checked, so this time was only the wait for the sandbox.
        this.#open.delete('check')
        this.#begin('run', at)
        return
      case 'tool_called':
        this.#begin('call', at, callKey(event), event.name)
        return
      case 'tool_answered':
        this.#end(callKey(event), at)
        return
      case 'script_executed':
        this.#end('run', at)
        return
      case 'attempt_ended':
        for (const key of this.#open.keys()) this.#end(key, at)
        return
      default:
    }
  }

  finish(totalMs: number): TimelineRow {
    for (const key of this.#open.keys()) this.#end(key, totalMs)
    const spans = this.#spans.toSorted((a, b) => a.from - b.from)
    return { step: this.#step, attempt: this.#attempt, spans }
  }

  #begin(kind: SpanKind, from: number, key: string = kind, name: string | null = null): void {
    this.#open.set(key, { kind, from, name })
  }

  #end(key: string, at: number): void {
    const span = this.#open.get(key)
    if (span === undefined) return
    this.#open.delete(key)
    this.#spans.push({ ...span, ms: Math.max(0, at - span.from) })
  }
}

function callKey({ name, key }: { readonly name: string; readonly key: string }): string {
  return `call ${name} ${key}`
}
