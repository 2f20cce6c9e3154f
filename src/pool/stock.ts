import type { Sandbox, SandboxEngine, SandboxSpec } from '../sandbox/index.ts'
import { noticed, type PooledSandbox } from './pooled-sandbox.ts'
import type { Counters } from './stats.ts'
import type { Waiter } from './waiter.ts'

/** The sandboxes of one shelf, from the start of their creation to their end. Who gets them is the shelf's business. */
export interface Stock {
  /** Idle, checked and leased ones, in the order in which they last came back. */
  readonly sandboxes: ReadonlySet<PooledSandbox>
  /** Creations under way. */
  readonly starting: number
  leased(): number
  /**
   * Starts a creation.
   * @param origin whom it is for; null for a refill. Its sandbox goes to whoever is first when it is there.
   */
  start(origin: Waiter | null): void
  /** Aborts the creations under way. */
  stopStarting(reason: unknown): void
  /** Makes a sandbox the one that came back last. */
  putLast(pooled: PooledSandbox): void
  /** Ends a sandbox; idempotent. It stops counting at once. */
  end(pooled: PooledSandbox): Promise<void>
  /** Resolves when the last leased sandbox begins to end, or after so long. For a shelf that keeps none of them. */
  allReturned(timeoutMs: number): Promise<void>
  /** Resolves when no creation and no end is under way. */
  allFinished(): Promise<void>
}

/** What happens to sandboxes by itself. */
export interface StockEvents {
  /** A creation succeeded; the sandbox counts from now on. */
  readonly onMade: (pooled: PooledSandbox) => void
  readonly onFailed: (origin: Waiter | null, error: unknown) => void
  /** A sandbox is no more, whoever ended it. */
  readonly onClosed: (pooled: PooledSandbox, cause: string) => void
  /** The engine could not end a sandbox. */
  readonly onEndFailed: (error: unknown) => void
}

/** Makes the stock of one spec; it counts what was created and destroyed. */
export function makeStock(
  engine: SandboxEngine,
  spec: SandboxSpec,
  counters: Counters,
  { onMade, onFailed, onClosed, onEndFailed }: StockEvents,
): Stock {
  const sandboxes = new Set<PooledSandbox>()
  /** What stops each creation under way. */
  const creations = new Set<AbortController>()
  /** Creations and ends under way. */
  const unfinished = new Set<Promise<void>>()
  let onAllReturned: (() => void) | undefined

  async function create(creation: AbortController, origin: Waiter | null): Promise<void> {
    let sandbox: Sandbox
    try {
      sandbox = await engine.create(spec, { signal: creation.signal, background: origin === null })
    } catch (error) {
      creations.delete(creation)
      onFailed(origin, error)
      return
    }
    creations.delete(creation)
    counters.created += 1
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
    onMade(pooled)
  }

  /** Also one that ended by itself is destroyed: only that frees what it held. */
  async function destroyed(sandbox: Sandbox): Promise<void> {
    try {
      await sandbox.destroy()
    } catch (error) {
      onEndFailed(error)
    }
  }

  function leased(): number {
    return [...sandboxes].filter((pooled) => pooled.state === 'leased').length
  }

  function track(work: Promise<void>): void {
    unfinished.add(work)
    void work.finally(() => unfinished.delete(work))
  }

  return {
    sandboxes,
    get starting() {
      return creations.size
    },
    leased,
    start(origin) {
      const creation = new AbortController()
      creations.add(creation)
      track(create(creation, origin))
    },
    stopStarting(reason) {
      for (const creation of creations) creation.abort(reason)
    },
    putLast(pooled) {
      sandboxes.delete(pooled)
      sandboxes.add(pooled)
    },
    end(pooled) {
      if (pooled.gone !== null) return pooled.gone
      pooled.state = 'ending'
      sandboxes.delete(pooled)
      counters.destroyed += 1
      pooled.gone = destroyed(pooled.sandbox)
      track(pooled.gone)
      if (leased() === 0) onAllReturned?.()
      return pooled.gone
    },
    async allReturned(timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<void>()
      onAllReturned = resolve
      const timer = setTimeout(resolve, timeoutMs)
      await promise
      clearTimeout(timer)
    },
    async allFinished() {
      // What finishes may start more: a sandbox that comes to a closed shelf is ended.
      while (unfinished.size > 0) await Promise.all(unfinished)
    },
  }
}
