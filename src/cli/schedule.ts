import { formatValue } from '../support/index.ts'

/** The part of a request that its place in the order depends on. */
export interface Planned {
  readonly id: string
  /** Ids that must be answered before it starts. */
  readonly after: readonly string[]
}

/** A request that can never start, and the reason. */
export interface Unstartable<R> {
  readonly request: R
  readonly problem: string
}

/** The order of a batch: a request may start when all requests that it comes after are answered. */
export class Schedule<R extends Planned> {
  readonly #seen = new Set<string>()
  readonly #answered = new Set<string>()
  readonly #ready: Set<R> = new Set()
  readonly #waiting = new Map<string, { readonly request: R; readonly open: Set<string> }>()
  /** By the id that is waited for. */
  readonly #waiters = new Map<string, Set<string>>()

  /** The number of requests that can start now. */
  get ready(): number {
    return this.#ready.size
  }

  /** The number of requests that wait for others. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Adds an id; returns true if it was there before. */
  addId(id: string): boolean {
    const before = this.#seen.has(id)
    this.#seen.add(id)
    return before
  }

  /** Adds a request. If it closes a circle of requests that wait for each other, returns those. */
  add(request: R): Unstartable<R>[] {
    const open = new Set(request.after.filter((id) => !this.#answered.has(id)))
    if (open.size === 0) {
      this.#ready.add(request)
      return []
    }
    this.#waiting.set(request.id, { request, open })
    for (const id of open) this.#waitersOf(id).add(request.id)
    return this.#circleOf(request.id)
  }

  /** The next one to start, in order of arrival. */
  take(): R | undefined {
    const [next] = this.#ready
    if (next !== undefined) this.#ready.delete(next)
    return next
  }

  /** Marks an id as answered; requests that waited for nothing else may start. */
  markAnswered(id: string): void {
    this.#answered.add(id)
    for (const waiter of this.#waiters.get(id) ?? []) {
      const found = this.#waiting.get(waiter)
      found?.open.delete(id)
      if (found === undefined || found.open.size > 0) continue
      this.#waiting.delete(waiter)
      this.#ready.add(found.request)
    }
    this.#waiters.delete(id)
  }

  /**
   * Marks the end of the input; returns the requests that wait for an id that never came.
   * @param wasAnswered returns true for an id that an earlier batch answered.
   */
  end(wasAnswered: (id: string) => boolean = () => false): Unstartable<R>[] {
    const awaited = [...this.#waiters.keys()].filter((id) => !this.#seen.has(id))
    for (const id of awaited.filter(wasAnswered)) this.markAnswered(id)
    return [...this.#waiting.values()].flatMap(({ request, open }) => {
      const missing = [...open].find((id) => !this.#seen.has(id))
      if (missing === undefined) return []
      return [this.#drop(request.id, `it waits for the id ${formatValue(missing)}, which no line has`)].flat()
    })
  }

  #waitersOf(id: string): Set<string> {
    const known = this.#waiters.get(id) ?? new Set()
    this.#waiters.set(id, known)
    return known
  }

  #circleOf(id: string): Unstartable<R>[] {
    // Only a request that others wait for can close a circle.
    if (!this.#waiters.has(id)) return []
    const path = this.#pathBack(id)
    if (path === undefined) return []
    const circle = [...path, id]
      .slice(0, 8)
      .map((one) => formatValue(one))
      .join(' → ')
    return path.flatMap((one) => this.#drop(one, `it waits for itself: ${circle}${path.length > 7 ? ' …' : ''}`))
  }

  /** The ids of a circle through an id, if there is one. */
  #pathBack(start: string): string[] | undefined {
    const cameFrom = new Map<string, string>()
    const queue = [start]
    for (const at of queue) {
      for (const next of this.#waiting.get(at)?.open ?? []) {
        if (next === start) return pathTo(at, start, cameFrom)
        if (cameFrom.has(next)) continue
        cameFrom.set(next, at)
        queue.push(next)
      }
    }
    return undefined
  }

  #drop(id: string, problem: string): Unstartable<R>[] {
    const found = this.#waiting.get(id)
    if (found === undefined) return []
    this.#waiting.delete(id)
    for (const one of found.open) this.#waiters.get(one)?.delete(id)
    return [{ request: found.request, problem }]
  }
}

function pathTo(end: string, start: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [end]
  for (let at = end; at !== start; path.unshift(at)) at = cameFrom.get(at) ?? start
  return path
}
