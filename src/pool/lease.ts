import type { Sandbox } from '../sandbox/index.ts'

/**
 * A sandbox borrowed from the pool, for `await using`. Keep the lease for as long as the sandbox is
 * used: one that is garbage-collected without having been given back has its sandbox destroyed.
 * The first of `release`, `destroy` and disposal decides; every later call waits for the same end and does nothing more.
 */
export interface Lease extends AsyncDisposable {
  readonly sandbox: Sandbox
  /** The number of leases of this sandbox, this one included: 1 for a new one. */
  readonly use: number
  /** Only leases of the same key share a sandbox. */
  readonly key: string
  /**
   * Gives the sandbox back for the next lease of the same key, or ends it when it is dead, used up or not needed any
   * more; then it resolves when the sandbox is gone. The caller must have wiped it before. A run that still uses it is
   * cancelled, and its sandbox ended. Never rejects.
   */
  release(): Promise<void>
  /**
   * Says that the user of the sandbox waits for a person: until the returned function is called or the lease ends, the sandbox does
   * not count towards the sizes of the pool, so that others are served. At most 32 leases of a pool are parked; further ones still count.
   */
  park(): () => void
  /** Ends the sandbox, because its state must not reach anybody else. Resolves when it is gone. Never rejects. */
  destroy(): Promise<void>
}

/** The pool's side of a lease. It must not refer to the lease, or an abandoned lease could never be found. */
export interface Holding {
  readonly sandbox: Sandbox
  readonly use: number
  readonly key: string
  park(): () => void
  /** Called once. */
  giveBack(how: 'released' | 'destroyed' | 'abandoned'): Promise<void>
}

/** Makes the leases of a pool, and ends the sandboxes of those that were dropped without being given back. */
export function leaseMaker(): (holding: Holding) => Lease {
  const abandoned = new FinalizationRegistry<Holding>((holding) => void holding.giveBack('abandoned'))
  return (holding) => {
    let ended: Promise<void> | null = null
    const token = {}
    const end = (how: 'released' | 'destroyed'): Promise<void> => {
      abandoned.unregister(token)
      ended ??= holding.giveBack(how)
      return ended
    }
    const lease: Lease = {
      sandbox: holding.sandbox,
      use: holding.use,
      key: holding.key,
      release: () => end('released'),
      park: () => holding.park(),
      destroy: () => end('destroyed'),
      [Symbol.asyncDispose]: () => end('released'),
    }
    abandoned.register(lease, holding, token)
    return lease
  }
}
