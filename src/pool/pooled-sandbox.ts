import type { Sandbox } from '../sandbox/index.ts'

/** A sandbox of the pool and what the pool knows about it. */
export interface PooledSandbox {
  readonly sandbox: Sandbox
  /**
   * `checking`: taken out for one waiter while its health is asked. `recovering`: returned, and not yet ready for another
   * run. `ending`: no longer of the pool.
   */
  state: 'idle' | 'checking' | 'leased' | 'recovering' | 'ending'
  /** Whom it was leased to; null while it is fresh, then it fits anybody. */
  key: string | null
  uses: number
  /** It ended by itself, or its borrower ends it. */
  dead: boolean
  /** When it came to rest, by `performance.now()`; null while it is being handed on. */
  idleSince: number | null
  /** Resolves when it is gone; null until its end begins. Never rejects. */
  gone: Promise<void> | null
}

/**
 * The same sandbox, that says so when its end begins: that of a container may take seconds, in which it serves no more and
 * `closed` is not settled yet.
 */
export function noticed(sandbox: Sandbox, onDestroy: () => void): Sandbox {
  const destroy = (): Promise<void> => {
    onDestroy()
    return sandbox.destroy()
  }
  const { id, info, channel, ready, closed } = sandbox
  return {
    id,
    info,
    channel,
    ready,
    closed,
    memoryKills: () => sandbox.memoryKills(),
    ...(sandbox.recovered === undefined ? {} : { recovered: sandbox.recovered.bind(sandbox) }),
    ...(sandbox.liftCpuLimit === undefined ? {} : { liftCpuLimit: sandbox.liftCpuLimit.bind(sandbox) }),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}

/** What a checkout may be given. */
export interface Wish {
  readonly key: string
  readonly wanted: PooledSandbox | null
}

/**
 * The idle sandbox that suits a wish best: the wanted one, then the one of the same key that came back last, then a
 * fresh one. Expects the sandboxes in the order in which they came back.
 */
export function chooseIdle(sandboxes: Iterable<PooledSandbox>, wish: Wish): PooledSandbox | null {
  let sameKey: PooledSandbox | null = null
  let fresh: PooledSandbox | null = null
  for (const pooled of sandboxes) {
    if (pooled.state !== 'idle') continue
    if (pooled.key === null) fresh ??= pooled
    else if (pooled.key === wish.key) sameKey = pooled
    else continue
    if (pooled === wish.wanted) return pooled
  }
  return sameKey ?? fresh
}

/** A sandbox that recovers, fits a wish and is not counted on by others. */
export function chooseRecovering(
  sandboxes: Iterable<PooledSandbox>,
  { key }: Wish,
  countedOn: ReadonlySet<PooledSandbox>,
): PooledSandbox | null {
  for (const pooled of sandboxes) {
    if (pooled.state === 'recovering' && pooled.key === key && !countedOn.has(pooled)) return pooled
  }
  return null
}

/** The idle sandbox to give up for somebody of another key: the one that came back first. */
export function chooseVictim(
  sandboxes: Iterable<PooledSandbox>,
  key: string,
  countedOn: ReadonlySet<PooledSandbox>,
): PooledSandbox | null {
  for (const pooled of sandboxes) {
    const isFree = pooled.state === 'idle' || pooled.state === 'recovering'
    if (isFree && pooled.key !== key && !countedOn.has(pooled)) return pooled
  }
  return null
}

/** Whether the wanted sandbox is out under the same key, so that it is worth waiting for. */
export function comesBack(wish: Wish): boolean {
  const { wanted, key } = wish
  return (
    wanted !== null &&
    !wanted.dead &&
    wanted.key === key &&
    (wanted.state === 'leased' || wanted.state === 'checking' || wanted.state === 'recovering')
  )
}
