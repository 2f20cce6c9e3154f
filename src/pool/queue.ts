import { chooseIdle, chooseRecovering, chooseVictim, isWorthWaitingFor, type PooledSandbox } from './pooled-sandbox.ts'
import type { Counters } from './stats.ts'
import type { Stock } from './stock.ts'
import type { Waiter } from './waiter.ts'

/** The decision for one waiter: it takes a sandbox, lets those behind it go ahead, or blocks them. */
type Turn =
  | { readonly kind: 'take'; readonly idle: PooledSandbox }
  | { readonly kind: 'pass' }
  | { readonly kind: 'hold' }

const PASS: Turn = { kind: 'pass' }
const HOLD: Turn = { kind: 'hold' }

/** The checkouts that wait, in order of arrival. Only {@link serve} hands out sandboxes, so nobody is overtaken. */
export class Queue {
  readonly #waiters = new Set<Waiter>()
  readonly #stock: Stock
  /** Maximum number of sandboxes. */
  readonly #capacity: number
  readonly #counters: Counters
  readonly #offer: (waiter: Waiter, pooled: PooledSandbox) => void

  /** @param offer removes the waiter from the queue, or marks it as checking. */
  constructor(
    stock: Stock,
    capacity: number,
    counters: Counters,
    offer: (waiter: Waiter, pooled: PooledSandbox) => void,
  ) {
    this.#stock = stock
    this.#capacity = capacity
    this.#counters = counters
    this.#offer = offer
  }

  get size(): number {
    return this.#waiters.size
  }

  has(waiter: Waiter): boolean {
    return this.#waiters.has(waiter)
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter)
  }

  /** Removes a waiter that gets a sandbox. */
  take(waiter: Waiter): void {
    this.#waiters.delete(waiter)
    if (waiter.outcome === null) this.#counters.hits += 1
  }

  drop(waiter: Waiter, error: unknown): void {
    this.#waiters.delete(waiter)
    waiter.refuse(error)
  }

  dropAll(error: unknown): void {
    for (const waiter of this.#waiters) this.drop(waiter, error)
  }

  /** Lets the waiter of a sandbox that ended during its health check continue. */
  stopChecking(pooled: PooledSandbox): void {
    for (const waiter of this.#waiters) if (waiter.checking === pooled) waiter.checking = null
  }

  /**
   * Charges a failed creation to one waiter: to `origin`, for which it was started, else to the first other waiter for which
   * one was started.
   */
  charge(origin: Waiter, error: unknown): void {
    const candidates = [...this.#waiters].filter((one) => one.demanded && one.failed === null)
    const waiter = candidates.includes(origin) ? origin : candidates[0]
    if (waiter !== undefined) waiter.failed = { error }
  }

  /** Serves everyone who can be served. */
  serve(): void {
    const round: Round = { claimed: 0, countedOn: new Set(), failing: false }
    for (const waiter of this.#waiters) {
      if (waiter.checking !== null) continue
      const turn = this.#turnOf(waiter, round)
      if (turn.kind === 'take') this.#offer(waiter, turn.idle)
      if (turn.kind === 'hold') break
    }
  }

  #turnOf(waiter: Waiter, round: Round): Turn {
    if (isWorthWaitingFor(waiter)) {
      if (waiter.wanted?.state.kind === 'recovering') round.countedOn.add(waiter.wanted)
      return this.#pass(waiter, 'wait')
    }
    const idle = chooseIdle(this.#stock.sandboxes, waiter)
    if (idle !== null) return { kind: 'take', idle }
    waiter.wanted = null
    if (waiter.failed !== null) {
      round.failing = this.#stock.starting > 0
      if (!round.failing) this.drop(waiter, waiter.failed.error)
      return PASS
    }
    const recovering = chooseRecovering(this.#stock.sandboxes, waiter, round.countedOn)
    if (recovering !== null) {
      round.countedOn.add(recovering)
      return this.#pass(waiter, 'wait')
    }
    if (round.claimed < this.#stock.starting) {
      round.claimed += 1
      return this.#pass(waiter, 'miss')
    }
    // Later waiters must not get ahead, and nothing is left for them either.
    if (round.failing || !this.#makeRoom(waiter.key, round.countedOn)) {
      this.#noteOutcome(waiter, 'wait')
      return HOLD
    }
    waiter.demanded = true
    this.#noteOutcome(waiter, 'miss')
    this.#stock.start(waiter)
    round.claimed += 1
    return PASS
  }

  #pass(waiter: Waiter, outcome: 'miss' | 'wait'): Turn {
    this.#noteOutcome(waiter, outcome)
    return PASS
  }

  /** Makes room for one more sandbox: if necessary, ends an idle one of another key on which no earlier waiter counts. */
  #makeRoom(key: string, countedOn: ReadonlySet<PooledSandbox>): boolean {
    if (this.#stock.size + this.#stock.starting < this.#capacity) return true
    const victim = chooseVictim(this.#stock.sandboxes, key, countedOn)
    if (victim === null) return false
    void this.#stock.end(victim)
    return true
  }

  #noteOutcome(waiter: Waiter, outcome: 'miss' | 'wait'): void {
    if (waiter.outcome !== null) return
    waiter.outcome = outcome
    this.#counters[outcome === 'miss' ? 'misses' : 'waits'] += 1
  }
}

/** The sandboxes on which earlier waiters count, while the queue is served once. */
interface Round {
  /** Creations in progress. */
  claimed: number
  /** Recovering sandboxes. */
  readonly countedOn: Set<PooledSandbox>
  /** True if a waiter whose creation failed still waits for the creations of others: then no further one is started. */
  failing: boolean
}
