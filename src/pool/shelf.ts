import type { SandboxSpec } from '../sandbox/index.ts'
import { makeBackOff } from './back-off.ts'
import { answers } from './health.ts'
import type { Holding, Lease } from './lease.ts'
import type { ResolvedPoolOptions } from './options.ts'
import { chooseIdle, chooseRecovering, chooseVictim, comesBack, type PooledSandbox } from './pooled-sandbox.ts'
import { closedError, exhaustedError } from './refusals.ts'
import { noStats, type PoolStats } from './stats.ts'
import { makeStock } from './stock.ts'
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
  const queue = new Set<Waiter>()
  const prewarmers = new Set<PromiseWithResolvers<void>>()
  const backOff = makeBackOff(settle)
  const counters = noStats()
  const stock = makeStock(engine, spec, counters, { onMade, onFailed, onClosed, onEndFailed })
  const { sandboxes } = stock
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
      onDeadline: (late) => {
        refuse(late, exhaustedError(name, late.wanted, { ...stats(), poolSize, maxOverflow, timeoutMs }, lastError))
      },
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
    const leased = stock.leased()
    return { ...counters, idle: sandboxes.size - leased, leased, starting: stock.starting, waiting: queue.size }
  }

  function shed(): void {
    filling = false
    checkouts = 0
    for (const pooled of sandboxes) if (isFree(pooled)) void stock.end(pooled)
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
    stock.stopStarting(closedError())
    for (const pooled of sandboxes) if (pooled.state !== 'leased') void stock.end(pooled)
    if (graceMs > 0 && stock.leased() > 0) await stock.allReturned(graceMs)
    for (const pooled of sandboxes) void stock.end(pooled)
    await stock.allFinished()
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
    const countedOn = new Set<PooledSandbox>()
    // While one whose creation failed waits for the others' creations, no further one is tried.
    let failing = false
    for (const waiter of queue) {
      if (waiter.checking !== null) continue
      if (comesBack(waiter)) {
        if (waiter.wanted?.state === 'recovering') countedOn.add(waiter.wanted)
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
        failing = stock.starting > 0
        if (!failing) drop(waiter, waiter.failed.error)
        continue
      }
      const recovering = chooseRecovering(sandboxes, waiter, countedOn)
      if (recovering !== null) {
        countedOn.add(recovering)
        noteOutcome(waiter, 'wait')
        continue
      }
      if (claimed < stock.starting) {
        claimed += 1
        noteOutcome(waiter, 'miss')
        continue
      }
      // Who comes later must not get ahead, and there is nothing left to get either.
      if (failing || !makeRoom(waiter.key, countedOn)) {
        noteOutcome(waiter, 'wait')
        break
      }
      noteOutcome(waiter, 'miss')
      waiter.demanded = true
      stock.start(waiter)
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
        void stock.end(pooled)
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

  /** Makes sure that one more may start, at the cost of a free one of another key that nobody further ahead counts on. */
  function makeRoom(key: string, countedOn: ReadonlySet<PooledSandbox>): boolean {
    if (sandboxes.size + stock.starting < poolSize + maxOverflow) return true
    const victim = chooseVictim(sandboxes, key, countedOn)
    if (victim === null) return false
    void stock.end(victim)
    return true
  }

  function refill(): void {
    if (!filling || backOff.pending) return
    while (sandboxes.size + stock.starting < poolSize) {
      counters.refills += 1
      stock.start(null)
    }
  }

  function onMade(pooled: PooledSandbox): void {
    lastError = undefined
    putBack(pooled)
  }

  function onFailed(origin: Waiter | null, error: unknown): void {
    if (!open) return
    counters.failures += 1
    discourage(error)
    charge(origin, error)
    settle()
  }

  function onEndFailed(error: unknown): void {
    lastError = error
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
    if (!open) return void stock.end(pooled)
    pooled.state = 'idle'
    pooled.idleSince = null
    stock.putLast(pooled)
    // Without a pool nothing is handed on: every checkout gets a fresh one.
    if (poolSize > 0 || pooled.uses === 0) serve()
    if (pooled.state === 'idle') {
      pooled.idleSince = performance.now()
      if (sandboxes.size > poolSize) void stock.end(pooled)
    }
    settle()
  }

  /** Puts a sandbox back when it is ready for another run. */
  function recover(pooled: PooledSandbox): void {
    const { sandbox } = pooled
    // One that would not be kept either way has nothing to recover for.
    const isSurplus = poolSize === 0 || (sandboxes.size > poolSize && queue.size === 0)
    if (!open || sandbox.recovered === undefined || isSurplus) return putBack(pooled)
    pooled.state = 'recovering'
    void sandbox.recovered().then(() => {
      if (pooled.state === 'recovering' && !pooled.dead) putBack(pooled)
    })
    settle()
  }

  async function giveBack(pooled: PooledSandbox, reusable: boolean): Promise<void> {
    if (pooled.state === 'leased' && reusable && !pooled.dead && pooled.uses < maxUses) {
      recover(pooled)
    } else {
      if (pooled.state === 'leased' && reusable && !pooled.dead) counters.retired += 1
      void stock.end(pooled)
      settle()
    }
    await pooled.gone
  }

  function onClosed(pooled: PooledSandbox, cause: string): void {
    pooled.dead = true
    if (isFree(pooled) || pooled.state === 'checking') {
      counters.failures += 1
      // One that dies before it was of any use is as good as a failed creation: its successor must not follow at once.
      if (pooled.uses === 0) discourage(new Error(`sandbox ${pooled.sandbox.id} ended while it was idle: ${cause}`))
      for (const waiter of queue) if (waiter.checking === pooled) waiter.checking = null
      void stock.end(pooled)
    }
    // A leased one stays counted until its lease ends, but nobody waits for it any longer.
    settle()
  }

  /** Creations do not work at the moment: the next refill waits, and who asked for a full shelf hears why. */
  function discourage(error: unknown): void {
    lastError = error
    backOff.failed()
    for (const prewarmer of prewarmers) prewarmer.reject(error)
    prewarmers.clear()
  }

  return { spec, checkout, prewarm, stats, shed, close }
}

/** Whether nobody has it, and nobody asks for its health. */
function isFree({ state }: PooledSandbox): boolean {
  return state === 'idle' || state === 'recovering'
}
