import { revokeClaim, type SandboxSpec } from '../sandbox/index.ts'
import { isResponsive } from './health.ts'
import type { Holding, Lease } from './lease.ts'
import type { ResolvedPoolOptions } from './options.ts'
import type { Checking, Idle, Leased, PooledSandbox, Recovering } from './pooled-sandbox.ts'
import type { Parking } from './parking.ts'
import { Queue } from './queue.ts'
import { Refill } from './refill.ts'
import { closedError, exhaustedError } from './refusals.ts'
import { type Counters, zeroCounters, type PoolStats } from './stats.ts'
import { Stock } from './stock.ts'
import { makeWaiter, type Waiter } from './waiter.ts'

/** A checkout with its defaults in place. */
export interface ShelfRequest {
  readonly key: string
  readonly sandboxId: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** From this number of checkouts on, an occasional spec is kept warm like any other. */
const REGULAR_FROM = 3

/**
 * The sandboxes of one spec, and the queue for them. Each change that may let a waiter continue calls `#settle`, which
 * checks the whole queue in order of arrival.
 */
export class Shelf {
  readonly spec: SandboxSpec
  readonly #name: string
  readonly #options: ResolvedPoolOptions
  readonly #makeLease: (holding: Holding) => Lease
  readonly #occasional: boolean
  readonly #onRest: () => void
  readonly #parking: Parking
  readonly #counters: Counters = zeroCounters()
  readonly #stock: Stock
  readonly #queue: Queue
  readonly #refill: Refill
  #checkouts = 0
  #open = true
  #closing: Promise<void> | null = null

  constructor(
    name: string,
    spec: SandboxSpec,
    options: ResolvedPoolOptions,
    makeLease: (holding: Holding) => Lease,
    occasional: boolean,
    onRest: () => void,
    parking: Parking,
  ) {
    const { engine, poolSize, maxOverflow, maxUses } = options
    const capacity = poolSize + maxOverflow
    this.spec = spec
    this.#name = name
    this.#options = options
    this.#makeLease = makeLease
    this.#occasional = occasional
    this.#onRest = onRest
    this.#parking = parking
    this.#stock = new Stock(engine, spec, maxUses, this.#counters, {
      onMade: (pooled) => this.#onMade(pooled),
      onFailed: (origin, error) => this.#onFailed(origin, error),
      onClosed: (pooled, cause) => this.#onClosed(pooled, cause),
      onEndFailed: (error) => this.#refill.noteEndFailure(error),
    })
    this.#queue = new Queue(this.#stock, capacity, this.#counters, (waiter, pooled) => this.#offer(waiter, pooled))
    this.#refill = new Refill(this.#stock, poolSize, capacity, this.#counters, () => this.#settle())
  }

  // ── calls of the pool ──────────────────────────────────────────────────────────────────────────────────────────

  checkout({ key, sandboxId, timeoutMs, signal }: ShelfRequest): Promise<Lease> {
    this.#checkouts += 1
    if (!this.#occasional || this.#checkouts >= REGULAR_FROM) this.#refill.activate()
    const waiter = makeWaiter({
      key,
      wanted: sandboxId === undefined ? null : this.#find(sandboxId, key),
      timeoutMs,
      signal,
      onDeadline: (late) => this.#refuse(late, this.#exhaustedError(late, timeoutMs)),
      onAbort: (aborted, error) => this.#refuse(aborted, error),
    })
    this.#queue.add(waiter)
    this.#settle()
    if (this.#queue.has(waiter)) waiter.wait()
    return waiter.promise
  }

  prewarm(): Promise<void> {
    if (!this.#open) return Promise.reject(closedError())
    const ready = this.#refill.prewarm()
    this.#settle()
    return ready
  }

  stats(): PoolStats {
    const { sandboxes, starting, cpuTimeMs } = this.#stock
    const leased = this.#stock.countLeased()
    const { size: waiting } = this.#queue
    const idle = sandboxes.size - leased
    return { ...this.#counters, cpuTimeMs, idle, idleBytes: this.idleBytes, leased, starting, waiting }
  }

  /** True while it has sandboxes, or checkouts that wait for one. */
  get isUsed(): boolean {
    const { sandboxes, starting } = this.#stock
    return sandboxes.size + starting + this.#queue.size > 0
  }

  /** The memory of its idle sandboxes, in bytes. */
  get idleBytes(): number {
    let bytes = 0
    for (const pooled of this.#stock.sandboxes) if (pooled.isFree) bytes += pooled.idleBytes
    return bytes
  }

  /** Lets what is there now, or is being created, serve one more lease, and then replaces it. */
  outdate(): void {
    this.#stock.outdate()
  }

  /** Ends idle sandboxes, and keeps none warm until the next checkout. */
  dropIdle(): void {
    this.#refill.deactivate()
    this.#checkouts = 0
    for (const pooled of this.#stock.sandboxes) if (pooled.isFree) void this.#stock.end(pooled)
  }

  close(graceMs: number): Promise<void> {
    this.#open = false
    this.#closing ??= this.#closeDown(graceMs)
    return this.#closing
  }

  async #closeDown(graceMs: number): Promise<void> {
    const stock = this.#stock
    this.#queue.dropAll(closedError())
    this.#refill.close(closedError())
    stock.stopStarting(closedError())
    for (const pooled of stock.sandboxes) if (pooled.state.kind !== 'leased') void stock.end(pooled)
    if (graceMs > 0 && stock.countLeased() > 0) await stock.awaitReturns(graceMs)
    for (const pooled of stock.sandboxes) void stock.end(pooled)
    await stock.awaitIdle()
  }

  #find(sandboxId: string, key: string): PooledSandbox | null {
    for (const pooled of this.#stock.sandboxes) {
      if (pooled.sandbox.id === sandboxId) return pooled.key === null || pooled.key === key ? pooled : null
    }
    return null
  }

  #exhaustedError({ wanted }: Waiter, timeoutMs: number): Error {
    const { poolSize, maxOverflow } = this.#options
    const fullness = { ...this.stats(), poolSize, maxOverflow, timeoutMs, waitsFor: this.#stock.waitsFor }
    return exhaustedError(this.#name, wanted, fullness, this.#refill.lastError)
  }

  // ── from the queue to a lease ──────────────────────────────────────────────────────────────────────────────────

  /** Serves the waiters that can be served, and starts the missing sandboxes. */
  #settle(): void {
    if (!this.#open) return
    this.#serve()
    this.#refill.run()
  }

  /** The only way to the queue: a sandbox that a run uses without a lease is not idle, and is ended first. */
  #serve(): void {
    for (const pooled of this.#stock.sandboxes)
      if (pooled.isFree && revokeClaim(pooled.sandbox)) void this.#stock.end(pooled)
    this.#queue.serve()
  }

  #refuse(waiter: Waiter, error: unknown): void {
    this.#queue.drop(waiter, error)
    this.#settle()
  }

  /** Gives an idle sandbox to a waiter; one that was idle for long is checked first. */
  #offer(waiter: Waiter, pooled: PooledSandbox): void {
    const { isHealthy, healthCheckAfterIdleMs } = this.#options
    const { state } = pooled
    if (state.kind !== 'idle') return
    const isRested = state.since !== null && performance.now() - state.since >= healthCheckAfterIdleMs
    if (isHealthy === undefined || !isRested) return this.#grant(waiter, pooled, state)
    state.check()
    waiter.checking = pooled
    void isResponsive(isHealthy, pooled.sandbox).then((healthy) => this.#onChecked(waiter, pooled, healthy))
  }

  #onChecked(waiter: Waiter, pooled: PooledSandbox, healthy: boolean): void {
    if (waiter.checking === pooled) waiter.checking = null
    const { state } = pooled
    if (state.kind !== 'checking') return
    const isMisused = revokeClaim(pooled.sandbox)
    if (!healthy || isMisused) {
      if (!healthy) this.#counters.failures += 1
      void this.#stock.end(pooled)
      this.#settle()
    } else if (this.#queue.has(waiter)) {
      this.#grant(waiter, pooled, state)
      this.#settle() // it may have become late
    } else {
      this.#putBack(pooled, state)
    }
  }

  #grant(waiter: Waiter, pooled: PooledSandbox, state: Idle | Checking): void {
    this.#queue.take(waiter)
    state.lease(waiter.key)
    this.#refill.noteUse()
    waiter.grant(
      this.#makeLease({
        sandbox: pooled.sandbox,
        use: pooled.uses,
        key: waiter.key,
        park: () => this.#park(pooled),
        giveBack: (how) => this.#giveBack(pooled, how),
      }),
    )
  }

  // ── from a lease back to the shelf ─────────────────────────────────────────────────────────────────────────────

  #park(pooled: PooledSandbox): () => void {
    if (pooled.state.kind !== 'leased' || pooled.unpark !== null || this.#parking.isFull) return () => undefined
    const leave = this.#parking.enter()
    const unpark = (): void => {
      if (pooled.unpark !== unpark) return
      pooled.unpark = null
      leave()
    }
    pooled.unpark = unpark
    this.#settle()
    return unpark
  }

  async #giveBack(pooled: PooledSandbox, how: 'released' | 'destroyed' | 'abandoned'): Promise<void> {
    pooled.unpark?.()
    const isMisused = how !== 'destroyed' && revokeClaim(pooled.sandbox)
    const { state } = pooled
    const fit = state.kind === 'leased' && how === 'released' && !isMisused && !pooled.dead ? state : undefined
    if (fit !== undefined && pooled.uses < this.#options.maxUses && !this.#stock.isOutdated(pooled)) {
      this.#recover(pooled, fit)
    } else {
      if (fit !== undefined) this.#counters.retired += 1
      void this.#stock.end(pooled)
      this.#settle()
    }
    if (pooled.state.kind === 'ending') await pooled.state.gone
  }

  /** Puts a sandbox back when it is ready for another run. */
  #recover(pooled: PooledSandbox, state: Leased): void {
    const { poolSize } = this.#options
    const { sandbox } = pooled
    // A surplus sandbox is ended, so it need not recover.
    const isDropped = poolSize === 0 || (this.#isSurplus(pooled) && this.#queue.size === 0)
    if (!this.#open || sandbox.recovered === undefined || isDropped) return this.#putBack(pooled, state)
    state.recover()
    void sandbox.recovered().then(() => {
      if (pooled.state.kind === 'recovering' && !pooled.dead) this.#putBack(pooled, pooled.state)
    })
    this.#settle()
  }

  /**
   * Hands a free sandbox to the next waiter that can use it, keeps it, or ends it if there are too many.
   * @param state undefined for a new one, which is idle from the start.
   */
  #putBack(pooled: PooledSandbox, state?: Checking | Leased | Recovering): void {
    const { poolSize } = this.#options
    if (!this.#open) return void this.#stock.end(pooled)
    if (revokeClaim(pooled.sandbox)) {
      void this.#stock.end(pooled)
      return this.#settle()
    }
    state?.free()
    this.#stock.putLast(pooled)
    // Without a pool nothing is passed on: every checkout gets a fresh one.
    if (poolSize > 0 || pooled.uses === 0) this.#serve()
    if (pooled.state.kind === 'idle') {
      pooled.state.rest()
      if (this.#isSurplus(pooled)) void this.#stock.end(pooled)
      else this.#onRest()
    }
    this.#settle()
  }

  /** True if there are more than `poolSize` of its kind: late sandboxes, or those that will last. */
  #isSurplus(pooled: PooledSandbox): boolean {
    return this.#stock.count(this.#stock.isLate(pooled)) > this.#options.poolSize
  }

  // ── events of sandboxes ────────────────────────────────────────────────────────────────────────────────────────

  #onMade(pooled: PooledSandbox): void {
    this.#refill.noteMade()
    this.#putBack(pooled)
  }

  #onFailed(origin: Waiter | null, error: unknown): void {
    if (!this.#open) return
    this.#counters.failures += 1
    this.#refill.noteFailure(error)
    if (origin !== null) this.#queue.charge(origin, error)
    this.#settle()
  }

  #onClosed(pooled: PooledSandbox, cause: string): void {
    pooled.markDead()
    if (pooled.isFree || pooled.state.kind === 'checking') {
      this.#counters.failures += 1
      // A sandbox that dies before its first use counts as a failed creation: the next one must not follow at once.
      if (pooled.uses === 0) {
        this.#refill.noteFailure(new Error(`sandbox ${pooled.sandbox.id} ended while it was idle: ${cause}`))
      }
      this.#queue.stopChecking(pooled)
      void this.#stock.end(pooled)
    }
    // A leased one stays counted until its lease ends, but nobody waits for it any longer.
    this.#settle()
  }
}
