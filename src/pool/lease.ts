import type { Sandbox } from '../sandbox/index.ts'

/**
 * A sandbox borrowed from the pool, for `await using`. Keep the lease for as long as the sandbox is
 * used: the sandbox of a lease that is garbage-collected before it was released is destroyed.
 * The first of `release`, `destroy` and disposal decides; later calls only wait for the same end.
 */
export interface Lease extends AsyncDisposable {
  readonly sandbox: Sandbox
  /** The number of leases of this sandbox, this one included: 1 for a new one. */
  readonly use: number
  /** Only leases of the same key share a sandbox. */
  readonly key: string
  /**
   * Returns the sandbox to the pool for the next lease of the same key. Destroys it instead if it is dead, was leased
   * `maxUses` times or is surplus; then resolves when the sandbox is gone. The caller must have wiped it before. A run that
   * still uses it is cancelled, and its sandbox destroyed. Never rejects.
   */
  release(): Promise<void>
  /**
   * Says that the user of the sandbox waits for a person: until the returned function is called or the lease ends, the sandbox does
   * not count towards the sizes of the pool, so that others are served. At most 32 leases of a pool are parked; further ones
   * still count.
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

/** Returns a function that makes the leases of a pool. Destroys the sandbox of a lease that was dropped without a release. */
export function createLeaseFactory(): (holding: Holding) => Lease {
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
