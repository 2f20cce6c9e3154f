import type { Sandbox, SandboxEngine, SandboxSpec } from '../sandbox/index.ts'
import { PooledSandbox } from './pooled-sandbox.ts'
import type { Counters } from './stats.ts'
import type { Waiter } from './waiter.ts'

/** The sandboxes of one shelf, from the start of their creation to their end. The shelf decides who gets them. */
export interface Stock {
  /** Idle, checked and leased ones, in the order in which they last came back. */
  readonly sandboxes: ReadonlySet<PooledSandbox>
  /** Creations in progress. */
  readonly starting: number
  countLeased(): number
  /**
   * Starts a creation.
   * @param origin the waiter that it is for; null for a refill. The sandbox goes to the first waiter when it is there.
   */
  start(origin: Waiter | null): void
  /** Aborts the creations in progress. */
  stopStarting(reason: unknown): void
  /** Makes a sandbox the one that came back last. */
  putLast(pooled: PooledSandbox): void
  /** Ends a sandbox; idempotent. It stops counting at once. */
  end(pooled: PooledSandbox): Promise<void>
  /** Resolves when the last leased sandbox begins to end, or after the timeout. For a shelf that keeps none of them. */
  allReturned(timeoutMs: number): Promise<void>
  /** Resolves when no creation and no end is in progress. */
  allFinished(): Promise<void>
}

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

/** Makes the stock of one spec; it counts what was created and destroyed. */
export function makeStock(
  engine: SandboxEngine,
  spec: SandboxSpec,
  counters: Counters,
  { onMade, onFailed, onClosed, onEndFailed }: StockEvents,
): Stock {
  const sandboxes = new Set<PooledSandbox>()
  /** Stops each creation in progress. */
  const creations = new Set<AbortController>()
  /** Creations and ends in progress. */
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
    const pooled = new PooledSandbox(sandbox)
    sandboxes.add(pooled)
    void sandbox.closed.then((ending) => onClosed(pooled, ending.cause))
    onMade(pooled)
  }

  /** A sandbox that ended by itself is destroyed too: only that frees its resources. */
  async function destroy(sandbox: Sandbox): Promise<void> {
    try {
      await sandbox.destroy()
    } catch (error) {
      onEndFailed(error)
    }
  }

  function countLeased(): number {
    return [...sandboxes].filter((pooled) => pooled.state.kind === 'leased').length
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
    countLeased,
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
      if (pooled.state.kind === 'ending') return pooled.state.gone
      sandboxes.delete(pooled)
      counters.destroyed += 1
      // First the state, then the destruction: an engine that calls back at once finds a sandbox that is ending.
      const { promise: gone, resolve } = Promise.withResolvers<void>()
      pooled.end(gone)
      resolve(destroy(pooled.sandbox))
      track(gone)
      if (countLeased() === 0) onAllReturned?.()
      return gone
    },
    async allReturned(timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<void>()
      onAllReturned = resolve
      const timer = setTimeout(resolve, timeoutMs)
      await promise
      clearTimeout(timer)
    },
    async allFinished() {
      // A finished creation may start more work: a sandbox that comes to a closed shelf is ended.
      while (unfinished.size > 0) await Promise.all(unfinished)
    },
  }
}
