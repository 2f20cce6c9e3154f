import { messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox, SandboxSpec } from '../sandbox/index.ts'
import { makeBackOff } from './back-off.ts'
import { answers } from './health.ts'
import type { Holding, Lease } from './lease.ts'
import type { ResolvedPoolOptions } from './options.ts'
import { chooseIdle, chooseVictim, comesBack, noticed, type PooledSandbox } from './pooled-sandbox.ts'
import { noStats, type PoolStats } from './stats.ts'
import { makeWaiter, type Waiter } from './waiter.ts'

/** The sandboxes of one spec, and the queue for them. */
export interface Shelf {
  readonly spec: SandboxSpec
  checkout(request: ShelfRequest): Promise<Lease>
  prewarm(): Promise<void>
  stats(): PoolStats
  /** Ends what is idle and keeps nothing warm until it is asked for again. */
  shed(): void
  close(graceMs: number): Promise<void>
}

/** A checkout with its defaults in place. */
export interface ShelfRequest {
  readonly key: string
  readonly sandboxId: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** An occasional spec that is asked for this often is kept warm like any other. */
const REGULAR_FROM = 3

/** A creation under way. */
interface Creation {
  /** Whom it was started for; null for a refill. Its sandbox goes to whoever is first when it is there. */
  readonly origin: Waiter | null
  readonly stop: AbortController
}

/**
 * Makes the shelf of one spec. Everything that may let a waiter go on ends in `settle`, which looks at the whole queue
 * in order of arrival: there is no second path to a sandbox, so nobody is overtaken.
 */
export function makeShelf(
  name: string,
  spec: SandboxSpec,
  options: ResolvedPoolOptions,
  makeLease: (holding: Holding) => Lease,
  occasional: boolean,
): Shelf {
  const { engine, poolSize, maxOverflow, maxUses } = options
  /** Idle, checked and leased ones, in the order in which they last came back. */
  const sandboxes = new Set<PooledSandbox>()
  const creations = new Set<Creation>()
  const queue = new Set<Waiter>()
  const prewarmers = new Set<PromiseWithResolvers<void>>()
  /** What `close` has to wait for: creations and ends under way. */
  const unfinished = new Set<Promise<void>>()
  const allReturned = Promise.withResolvers<void>()
  const backOff = makeBackOff(settle)
  const counters = noStats()
  let lastError: unknown
  let filling = false
  let checkouts = 0
  let open = true
  let closing: Promise<void> | null = null

  // ── what callers do ────────────────────────────────────────────────────────────────────────────────────────────

  function checkout({ key, sandboxId, timeoutMs, signal }: ShelfRequest): Promise<Lease> {
    checkouts += 1
    filling ||= !occasional || checkouts >= REGULAR_FROM
    const waiter = makeWaiter({
      key,
      wanted: sandboxId === undefined ? null : find(sandboxId, key),
      timeoutMs,
      signal,
      onDeadline: (late) => refuse(late, exhausted(late, timeoutMs)),
      onAbort: refuse,
    })
    queue.add(waiter)
    settle()
    if (queue.has(waiter)) waiter.wait()
    return waiter.promise
  }

  function prewarm(): Promise<void> {
    if (!open) return Promise.reject(closedError())
    const ready = Promise.withResolvers<void>()
    prewarmers.add(ready)
    filling = true
    backOff.cancel()
    settle()
    return ready.promise
  }

  function stats(): PoolStats {
    const leased = leasedOnes().length
    return {
      ...counters,
      idle: sandboxes.size - leased,
      leased,
      starting: creations.size,
      waiting: queue.size,
    }
  }

  function shed(): void {
    filling = false
    checkouts = 0
    for (const pooled of sandboxes) if (pooled.state === 'idle') void end(pooled)
  }

  function close(graceMs: number): Promise<void> {
    open = false
    closing ??= closeDown(graceMs)
    return closing
  }

  async function closeDown(graceMs: number): Promise<void> {
    backOff.cancel()
    for (const waiter of queue) drop(waiter, closedError())
    for (const prewarmer of prewarmers) prewarmer.reject(closedError())
    prewarmers.clear()
    for (const creation of creations) creation.stop.abort(closedError())
    for (const pooled of sandboxes) if (pooled.state !== 'leased') void end(pooled)
    if (graceMs > 0 && leasedOnes().length > 0) await oneOf(allReturned.promise, graceMs)
    for (const pooled of sandboxes) void end(pooled)
    // A creation that comes to its end starts the end of its sandbox.
    while (unfinished.size > 0) await Promise.all(unfinished)
  }

  // ── the queue ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Serves who can be served, starts what is missing. */
  function settle(): void {
    if (!open) return
    serve()
    refill()
    if (sandboxes.size < poolSize) return
    for (const prewarmer of prewarmers) prewarmer.resolve()
    prewarmers.clear()
  }

  function serve(): void {
    // Creations under way that a waiter further ahead counts on.
    let claimed = 0
    // While one whose creation failed waits for the others' creations, no further one is tried.
    let failing = false
    for (const waiter of queue) {
      if (waiter.checking !== null) continue
      if (comesBack(waiter)) {
        noteOutcome(waiter, 'wait')
        continue
      }
      const idle = chooseIdle(sandboxes, waiter)
      if (idle !== null) {
        offer(waiter, idle)
        continue
      }
      waiter.wanted = null
      if (waiter.failed !== null) {
        failing = creations.size > 0
        if (!failing) drop(waiter, waiter.failed.error)
        continue
      }
      if (claimed < creations.size) {
        claimed += 1
        noteOutcome(waiter, 'miss')
        continue
      }
      // Who comes later must not get ahead, and there is nothing left to get either.
      if (failing || !makeRoom(waiter.key)) {
        noteOutcome(waiter, 'wait')
        break
      }
      noteOutcome(waiter, 'miss')
      waiter.demanded = true
      start(waiter)
      claimed += 1
    }
  }

  function offer(waiter: Waiter, pooled: PooledSandbox): void {
    const { isHealthy, healthCheckAfterIdleMs } = options
    const rested = pooled.idleSince === null ? -1 : performance.now() - pooled.idleSince
    if (isHealthy === undefined || rested < healthCheckAfterIdleMs) return grant(waiter, pooled)
    pooled.state = 'checking'
    waiter.checking = pooled
    void answers(isHealthy, pooled.sandbox).then((healthy) => {
      if (waiter.checking === pooled) waiter.checking = null
      if (pooled.state !== 'checking') return
      if (!healthy) {
        counters.failures += 1
        void end(pooled)
        settle()
      } else if (queue.has(waiter)) {
        grant(waiter, pooled)
      } else {
        putBack(pooled)
      }
    })
  }

  function grant(waiter: Waiter, pooled: PooledSandbox): void {
    queue.delete(waiter)
    if (waiter.outcome === null) counters.hits += 1
    pooled.state = 'leased'
    pooled.key = waiter.key
    pooled.uses += 1
    backOff.worked()
    waiter.grant(
      makeLease({
        sandbox: pooled.sandbox,
        use: pooled.uses,
        key: waiter.key,
        giveBack: (how) => giveBack(pooled, how === 'released'),
      }),
    )
  }

  function refuse(waiter: Waiter, error: unknown): void {
    drop(waiter, error)
    settle()
  }

  function drop(waiter: Waiter, error: unknown): void {
    queue.delete(waiter)
    waiter.refuse(error)
  }

  function noteOutcome(waiter: Waiter, outcome: 'miss' | 'wait'): void {
    if (waiter.outcome !== null) return
    waiter.outcome = outcome
    counters[outcome === 'miss' ? 'misses' : 'waits'] += 1
  }

  function find(sandboxId: string, key: string): PooledSandbox | null {
    for (const pooled of sandboxes) {
      if (pooled.sandbox.id === sandboxId) return pooled.key === null || pooled.key === key ? pooled : null
    }
    return null
  }

  // ── sandboxes come and go ──────────────────────────────────────────────────────────────────────────────────────

  /** Makes sure that one more may start, at the cost of an idle one of another key. */
  function makeRoom(key: string): boolean {
    if (sandboxes.size + creations.size < poolSize + maxOverflow) return true
    const victim = chooseVictim(sandboxes, key)
    if (victim === null) return false
    void end(victim)
    return true
  }

  function refill(): void {
    if (!filling || backOff.pending) return
    while (sandboxes.size + creations.size < poolSize) {
      counters.refills += 1
      start(null)
    }
  }

  function start(origin: Waiter | null): void {
    const creation: Creation = { origin, stop: new AbortController() }
    creations.add(creation)
    track(create(creation))
  }

  async function create(creation: Creation): Promise<void> {
    let sandbox: Sandbox
    try {
      sandbox = await engine.create(spec, { signal: creation.stop.signal, background: creation.origin === null })
    } catch (error) {
      creations.delete(creation)
      if (!open) return
      counters.failures += 1
      discourage(error)
      charge(creation.origin, error)
      settle()
      return
    }
    creations.delete(creation)
    counters.created += 1
    lastError = undefined
    const pooled: PooledSandbox = {
      sandbox: noticed(sandbox, () => {
        pooled.dead = true
      }),
      state: 'idle',
      key: null,
      uses: 0,
      dead: false,
      idleSince: null,
      gone: null,
    }
    sandboxes.add(pooled)
    void sandbox.closed.then((ending) => onClosed(pooled, ending.cause))
    putBack(pooled)
  }

  /** A failed creation ends the hopes of one waiter: its own, or another that had one started when that is served. */
  function charge(origin: Waiter | null, error: unknown): void {
    if (origin === null) return
    const hopeful = [...queue].filter((one) => one.demanded && one.failed === null)
    const waiter = hopeful.includes(origin) ? origin : hopeful[0]
    if (waiter !== undefined) waiter.failed = { error }
  }

  /** Hands a sandbox that is free now to the next who can use it, keeps it, or ends it when it is one too many. */
  function putBack(pooled: PooledSandbox): void {
    if (!open) return void end(pooled)
    pooled.state = 'idle'
    pooled.idleSince = null
    sandboxes.delete(pooled)
    sandboxes.add(pooled)
    // Without a pool nothing is handed on: every checkout gets a fresh one.
    if (poolSize > 0 || pooled.uses === 0) serve()
    if (pooled.state === 'idle') {
      pooled.idleSince = performance.now()
      if (sandboxes.size > poolSize) void end(pooled)
    }
    settle()
  }

  async function giveBack(pooled: PooledSandbox, reusable: boolean): Promise<void> {
    if (pooled.state === 'leased' && reusable && !pooled.dead && pooled.uses < maxUses) {
      putBack(pooled)
    } else {
      if (pooled.state === 'leased' && reusable && !pooled.dead) counters.retired += 1
      void end(pooled)
      settle()
    }
    await pooled.gone
  }

  function onClosed(pooled: PooledSandbox, cause: string): void {
    pooled.dead = true
    if (pooled.state === 'idle' || pooled.state === 'checking') {
      counters.failures += 1
      // One that dies before it was of any use is as good as a failed creation: its successor must not follow at once.
      if (pooled.uses === 0) discourage(new Error(`sandbox ${pooled.sandbox.id} ended while it was idle: ${cause}`))
      for (const waiter of queue) if (waiter.checking === pooled) waiter.checking = null
      void end(pooled)
    }
    // A leased one stays counted until its lease ends, but nobody waits for it any longer.
    settle()
  }

  /** Ends a sandbox; idempotent. It stops counting at once. */
  function end(pooled: PooledSandbox): Promise<void> {
    if (pooled.gone !== null) return pooled.gone
    pooled.state = 'ending'
    sandboxes.delete(pooled)
    counters.destroyed += 1
    pooled.gone = destroyed(pooled.sandbox)
    track(pooled.gone)
    if (leasedOnes().length === 0 && !open) allReturned.resolve()
    return pooled.gone
  }

  /** Also one that ended by itself is destroyed: only that frees what it held. */
  async function destroyed(sandbox: Sandbox): Promise<void> {
    try {
      await sandbox.destroy()
    } catch (error) {
      lastError = error
    }
  }

  /** Creations do not work at the moment: the next refill waits, and who asked for a full shelf hears why. */
  function discourage(error: unknown): void {
    lastError = error
    backOff.failed()
    for (const prewarmer of prewarmers) prewarmer.reject(error)
    prewarmers.clear()
  }

  function track(work: Promise<void>): void {
    unfinished.add(work)
    void work.finally(() => unfinished.delete(work))
  }

  function leasedOnes(): PooledSandbox[] {
    return [...sandboxes].filter((pooled) => pooled.state === 'leased')
  }

  // ── errors ─────────────────────────────────────────────────────────────────────────────────────────────────────

  function exhausted(waiter: Waiter, timeoutMs: number): SandglassError {
    const { leased, starting, waiting } = stats()
    const sizes = [
      `${leased} leased`,
      ...(starting > 0 ? [`${starting} starting`] : []),
      `pool size ${poolSize}`,
      `overflow ${maxOverflow}`,
      `${waiting} waiting`,
      `after ${timeoutMs} ms`,
    ].join(', ')
    const what = waiter.wanted === null ? `sandbox of spec "${name}"` : `lease of sandbox ${waiter.wanted.sandbox.id}`
    const why = lastError === undefined ? '' : `; the engine last said: ${messageOf(lastError)}`
    return new SandglassError(
      'pool_exhausted',
      `pool exhausted: no ${what} became free (${sizes})${why}; give leases back sooner, ` +
        'or raise poolSize, maxOverflow or checkoutTimeoutMs',
      lastError === undefined ? undefined : { cause: lastError },
    )
  }

  return { spec, checkout, prewarm, stats, shed, close }
}

/** The error of everything that is asked of a closed pool. */
export function closedError(): SandglassError {
  return new SandglassError('pool_closed', 'the sandbox pool is closed; make a new one')
}

async function oneOf(promise: Promise<void>, timeoutMs: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, timeoutMs)
  await Promise.race([promise, late])
  clearTimeout(timer)
}
