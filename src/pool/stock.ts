import { cpuTimeOf, type Sandbox, type SandboxEngine, type SandboxSpec, sumOfTimes } from '../sandbox/index.ts'
import { PooledSandbox } from './pooled-sandbox.ts'
import type { Counters } from './stats.ts'
import type { Waiter } from './waiter.ts'

/** Events of sandboxes. */
export interface StockEvents {
  /** A creation succeeded; the sandbox counts from now on. */
  readonly onMade: (pooled: PooledSandbox) => void
  readonly onFailed: (origin: Waiter | null, error: unknown) => void
  /** A sandbox has ended, for any reason. */
  readonly onClosed: (pooled: PooledSandbox, cause: string) => void
  /** The engine could not end a sandbox. */
  readonly onEndFailed: (error: unknown) => void
}

/** The sandboxes of one shelf, from the start of their creation to their end. The shelf decides who gets them. */
export class Stock {
  readonly #engine: SandboxEngine
  readonly #spec: SandboxSpec
  readonly #counters: Counters
  readonly #events: StockEvents
  /** From this number of uses on, a sandbox counts as one that will soon be retired. */
  readonly #lateFrom: number
  readonly #sandboxes = new Set<PooledSandbox>()
  /** Stops each creation in progress; and why it waits, if the engine says so. */
  readonly #creations = new Map<AbortController, string | undefined>()
  /** Creations and ends in progress. */
  readonly #unfinished = new Set<Promise<void>>()
  /** The CPU time of sandboxes that it has ended. */
  #pastCpuTimeMs: number | null = 0
  #onAllReturned: (() => void) | undefined
  #generation = 0

  /**
   * @param maxUses uses after which a sandbox is retired.
   * @param counters in which it counts sandboxes that were created and destroyed.
   */
  constructor(engine: SandboxEngine, spec: SandboxSpec, maxUses: number, counters: Counters, events: StockEvents) {
    this.#engine = engine
    this.#spec = spec
    this.#counters = counters
    this.#events = events
    this.#lateFrom = maxUses - lateUses(maxUses)
  }

  /** Those that are idle, checked, recovering or leased, in the order in which they were last returned. */
  get sandboxes(): ReadonlySet<PooledSandbox> {
    return this.#sandboxes
  }

  /** Creations in progress. */
  get starting(): number {
    return this.#creations.size
  }

  /** Why one of them waits; undefined if none does, or the engine does not say it. */
  get waitsFor(): string | undefined {
    return [...this.#creations.values()].find((why) => why !== undefined)
  }

  /** The sandboxes that count towards the sizes of the pool: without those whose leases are parked. */
  get size(): number {
    return [...this.#sandboxes].filter(({ unpark }) => unpark === null).length
  }

  /** True if a sandbox is at its last uses, so that its successor is made. */
  isLate({ uses }: PooledSandbox): boolean {
    return uses >= this.#lateFrom
  }

  /** The part of `size` that is late, or the part that is not. */
  count(late: boolean): number {
    return [...this.#sandboxes].filter((pooled) => pooled.unpark === null && this.isLate(pooled) === late).length
  }

  /** The CPU time of all sandboxes that were made, in milliseconds; null if a part is unknown. */
  get cpuTimeMs(): number | null {
    return sumOfTimes([this.#pastCpuTimeMs, ...[...this.#sandboxes].map(({ sandbox }) => cpuTimeOf(sandbox))])
  }

  /** Makes everything outdated that is there or being created. */
  outdate(): void {
    this.#generation += 1
  }

  isOutdated({ generation }: PooledSandbox): boolean {
    return generation !== this.#generation
  }

  countLeased(): number {
    return [...this.#sandboxes].filter((pooled) => pooled.state.kind === 'leased').length
  }

  /**
   * Starts a creation.
   * @param origin the waiter that it is for; null for a refill. When created, the sandbox goes to the first waiter.
   */
  start(origin: Waiter | null): void {
    const creation = new AbortController()
    this.#creations.set(creation, undefined)
    this.#track(this.#create(creation, origin))
  }

  /** Aborts the creations in progress. */
  stopStarting(reason: unknown): void {
    for (const creation of this.#creations.keys()) creation.abort(reason)
  }

  /** Moves a sandbox to the end of the order of returns. */
  putLast(pooled: PooledSandbox): void {
    this.#sandboxes.delete(pooled)
    this.#sandboxes.add(pooled)
  }

  /** Ends a sandbox; idempotent. It stops counting at once. */
  end(pooled: PooledSandbox): Promise<void> {
    const { state } = pooled
    if (state.kind === 'ending') return state.gone
    this.#sandboxes.delete(pooled)
    this.#counters.destroyed += 1
    this.#pastCpuTimeMs = sumOfTimes([this.#pastCpuTimeMs, cpuTimeOf(pooled.sandbox)])
    // The state changes before the destruction: a synchronous callback of the engine then sees a sandbox that is ending.
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    state.end(gone)
    resolve(this.#destroy(pooled.sandbox))
    this.#track(gone)
    if (this.countLeased() === 0) this.#onAllReturned?.()
    return gone
  }

  /** Resolves when the last leased sandbox begins to end, or after the timeout. Call it when the shelf is closing. */
  async awaitReturns(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onAllReturned = resolve
    const timer = setTimeout(resolve, timeoutMs)
    await promise
    clearTimeout(timer)
  }

  /** Resolves when no creation and no end is in progress. */
  async awaitIdle(): Promise<void> {
    // A finished creation may start more work: a sandbox that comes to a closed shelf is ended.
    while (this.#unfinished.size > 0) await Promise.all(this.#unfinished)
  }

  async #create(creation: AbortController, origin: Waiter | null): Promise<void> {
    let sandbox: Sandbox
    const generation = this.#generation
    try {
      sandbox = await this.#engine.create(this.#spec, {
        signal: creation.signal,
        background: origin === null,
        onWaiting: (why) => void (this.#creations.has(creation) && this.#creations.set(creation, why)),
      })
    } catch (error) {
      this.#creations.delete(creation)
      this.#events.onFailed(origin, error)
      return
    }
    this.#creations.delete(creation)
    this.#counters.created += 1
    const pooled = new PooledSandbox(sandbox, generation)
    this.#sandboxes.add(pooled)
    void sandbox.closed.then((ending) => this.#events.onClosed(pooled, ending.cause))
    this.#events.onMade(pooled)
  }

  /** A sandbox that ended by itself is destroyed too: only that frees its resources. */
  async #destroy(sandbox: Sandbox): Promise<void> {
    try {
      await sandbox.destroy()
    } catch (error) {
      this.#events.onEndFailed(error)
    }
  }

  #track(work: Promise<void>): void {
    this.#unfinished.add(work)
    void work.finally(() => this.#unfinished.delete(work))
  }
}

/** More runs than any engine's start takes. */
const MAX_LATE_USES = 50

/** The number of last uses during which a sandbox and its successor live: a tenth. One of two uses would be half of its life. */
function lateUses(maxUses: number): number {
  return maxUses < 3 ? 0 : Math.min(MAX_LATE_USES, Math.max(1, Math.floor(maxUses / 10)))
}
