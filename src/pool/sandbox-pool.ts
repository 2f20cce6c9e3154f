import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { SandglassError } from '../errors/index.ts'
import { type SandboxSpec, sumOfTimes } from '../sandbox/index.ts'
import { type Holding, type Lease, createLeaseFactory } from './lease.ts'
import {
  checkLimits,
  type CheckoutOptions,
  type PoolOptions,
  type ResolvedPoolOptions,
  resolvePoolOptions,
  checkTimerMs,
} from './options.ts'
import { Parking } from './parking.ts'
import { abortedError, closedError } from './refusals.ts'
import { Shelf } from './shelf.ts'
import { type PoolStats, sumStats } from './stats.ts'

/** Options of closing a pool. */
export interface PoolCloseOptions {
  /** Milliseconds in which leases can be released before their sandboxes are destroyed. Default 0. */
  readonly graceMs?: number
}

/**
 * Keeps warm sandboxes and lends them. Each named spec has `poolSize` sandboxes, filled up
 * in the background from its first checkout on, and up to `maxOverflow` more on demand, or as successors of those whose uses come to an
 * end; then checkouts wait in order of arrival. A sandbox is lent again only under the key of its first lease. Close it, or the sandboxes stay.
 */
export class SandboxPool implements AsyncDisposable {
  readonly #options: ResolvedPoolOptions
  readonly #shelves: Map<string, Shelf> = new Map()
  readonly #makeLease: (holding: Holding) => Lease = createLeaseFactory()
  readonly #defaultKey: string = `pool:${randomUUID()}`
  /** Names of occasional specs, in order of last use. */
  readonly #occasional: Set<string> = new Set()
  /** Pools for variants of a spec, which close with this one. */
  readonly #beside: SandboxPool[] = []
  readonly #parking: Parking = new Parking()
  #closing: Promise<void> | null = null

  /** @throws TypeError naming the option that is wrong. */
  constructor(options: PoolOptions) {
    this.#options = resolvePoolOptions(options)
    for (const [name, spec] of Object.entries(options.specs)) this.addSpec(name, spec)
  }

  /**
   * Adds a spec; an equal one of the same name changes nothing.
   * @param options `occasional`: nothing is kept warm for it before its third checkout, and it gives its idle sandboxes
   * up when those of all specs take more than `maxIdleBytes`. For specs that are not known in advance.
   * @throws TypeError when the name belongs to another spec, or a limit is missing.
   */
  addSpec(name: string, spec: SandboxSpec, options: { readonly occasional?: boolean } = {}): void {
    if (typeof name !== 'string') throw new TypeError('name: must be a string')
    if (typeof spec !== 'object' || spec === null) throw new TypeError(`specs.${name}: must be a SandboxSpec`)
    checkLimits(`specs.${name}.limits`, spec.limits)
    const known = this.#shelves.get(name)
    if (known === undefined) {
      // A copy, so that a later change of the caller's object cannot mix two kinds of sandboxes under one name.
      const occasional = options.occasional === true
      const onRest = (): void => this.#keepWithinBudget(name)
      const shelf = new Shelf(
        name,
        structuredClone(spec),
        this.#options,
        this.#makeLease,
        occasional,
        onRest,
        this.#parking,
      )
      this.#shelves.set(name, shelf)
      if (occasional) this.#occasional.add(name)
    } else if (!isDeepStrictEqual(known.spec, spec)) {
      throw new TypeError(`specs.${name}: the pool has another spec of this name; use another name`)
    }
  }

  /**
   * Makes a pool of the same engine for a variant of a spec of this pool. It has leases of its own and closes with this
   * pool. It starts no sandbox before its first checkout.
   * @param name the name of the spec, in this pool and in the new one.
   * @throws SandglassError `unknown_spec`, `pool_closed`; TypeError naming the option that is wrong.
   */
  beside(
    name: string,
    changes: Partial<SandboxSpec>,
    sizes: Pick<PoolOptions, 'poolSize' | 'maxOverflow' | 'maxUses'> = {},
  ): SandboxPool {
    const { spec } = this.#shelf(name)
    if (this.#closing !== null) throw closedError()
    const pool = new SandboxPool({ ...this.#options, ...sizes, specs: { [name]: { ...spec, ...changes } } })
    this.#beside.push(pool)
    return pool
  }

  /**
   * Lends a sandbox of a spec. The choice: the one asked for by `sandboxId` (waiting for it while it is leased under the
   * same key), an idle one of the same key, a fresh idle one, a new one, a new one in place of an idle one of another
   * key; else it waits.
   * @throws SandglassError `pool_exhausted` at the deadline (its cause is the engine's last error, if that failed),
   * `pool_closed`, `unknown_spec`, `aborted`, or the engine's own when a creation for this checkout failed.
   * @throws TypeError naming the option that is wrong.
   */
  async checkout(name: string, options: CheckoutOptions = {}): Promise<Lease> {
    const { key = this.#defaultKey, sandboxId, signal, timeoutMs = this.#options.checkoutTimeoutMs } = options
    if (typeof key !== 'string') throw new TypeError('key: must be a string')
    if (sandboxId !== undefined && typeof sandboxId !== 'string') throw new TypeError('sandboxId: must be a string')
    checkTimerMs('timeoutMs', timeoutMs)
    if (this.#closing !== null) throw closedError()
    const shelf = this.#shelf(name)
    if (signal?.aborted === true) throw abortedError(signal)
    if (this.#occasional.delete(name)) this.#occasional.add(name)
    return shelf.checkout({ key, sandboxId, signal, timeoutMs })
  }

  /**
   * Ends the idle sandboxes of a spec, and keeps none warm for it until its next checkout.
   * @throws SandglassError `unknown_spec`.
   */
  dropIdle(name: string): void {
    this.#shelf(name).dropIdle()
  }

  /**
   * Replaces the sandboxes of matching specs, because new ones would have more: each of them, also of those that are being
   * created, serves one more lease at most.
   */
  outdate(matches: (spec: SandboxSpec) => boolean): void {
    for (const shelf of this.#shelves.values()) if (matches(shelf.spec)) shelf.outdate()
  }

  /**
   * Fills a spec, or all of them, without waiting for a checkout; resolves when `poolSize` sandboxes are there, or were given up
   * meanwhile ({@link dropIdle}, `maxIdleBytes`).
   * @throws the engine's error when one cannot be made (the pool continues to try in the background), or SandglassError
   * `unknown_spec` or `pool_closed`.
   */
  async prewarm(name?: string): Promise<void> {
    if (this.#closing !== null) throw closedError()
    const shelves = name === undefined ? [...this.#shelves.values()] : [this.#shelf(name)]
    await Promise.all(shelves.map((shelf) => shelf.prewarm()))
  }

  /**
   * The counters of one spec, or their sums over all. The CPU time of all includes that of the pools {@link beside} this one.
   * @throws SandglassError `unknown_spec`.
   */
  stats(name?: string): PoolStats {
    if (name !== undefined) return this.#shelf(name).stats()
    const sum = sumStats([...this.#shelves.values()].map((shelf) => shelf.stats()))
    return {
      ...sum,
      cpuTimeMs: sumOfTimes([sum, ...this.#beside.map((pool) => pool.stats())].map((one) => one.cpuTimeMs)),
    }
  }

  /** True while a matching spec has sandboxes, or checkouts that wait for one. */
  hasUsers(matches: (spec: SandboxSpec) => boolean): boolean {
    return [...this.#shelves.values()].some((shelf) => matches(shelf.spec) && shelf.isUsed)
  }

  /**
   * Refuses every further and every waiting checkout, ends idle sandboxes, waits `graceMs` for the release of leases and then
   * destroys their sandboxes. Resolves when nothing is left, creations in progress included. A second call waits for the first.
   * @throws TypeError naming `graceMs` when it is not a time.
   */
  async close(options: PoolCloseOptions = {}): Promise<void> {
    const graceMs = checkTimerMs('graceMs', options.graceMs ?? 0)
    this.#closing ??= Promise.all([
      ...[...this.#shelves.values()].map((shelf) => shelf.close(graceMs)),
      ...this.#beside.map((pool) => pool.close(options)),
    ]).then(() => {})
    await this.#closing
  }

  /** Closes without grace. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * Drops the idle sandboxes of occasional specs, least recently used first, while those of all specs exceed `maxIdleBytes`.
   * Spares the spec just used.
   */
  #keepWithinBudget(used: string): void {
    let bytes = [...this.#shelves.values()].reduce((sum, shelf) => sum + shelf.idleBytes, 0)
    for (const name of this.#occasional) {
      if (bytes <= this.#options.maxIdleBytes) return
      const shelf = this.#shelves.get(name)
      if (shelf === undefined || name === used) continue
      bytes -= shelf.idleBytes
      shelf.dropIdle()
    }
  }

  #shelf(name: string): Shelf {
    const shelf = this.#shelves.get(name)
    if (shelf !== undefined) return shelf
    const known = [...this.#shelves.keys()].map((one) => JSON.stringify(one)).join(', ')
    throw new SandglassError('unknown_spec', `the pool has no spec ${JSON.stringify(name)}; it has ${known || 'none'}`)
  }
}
