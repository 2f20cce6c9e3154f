import type { Sandbox } from '../sandbox/index.ts'

/**
 * A sandbox borrowed from the pool (requirement PO-01), for `await using`. Keep the lease for as long as the sandbox is
 * used: one that is garbage-collected without having been given back has its sandbox destroyed.
 * The first of `release`, `destroy` and disposal decides; every later call waits for the same end and does nothing more.
 */
export interface Lease extends AsyncDisposable {
  readonly sandbox: Sandbox
  /** How many times this sandbox has been leased, this time included: 1 for a new one. */
  readonly use: number
  /** Who may get the same sandbox again (requirement PO-02). */
  readonly key: string
  /**
   * Gives the sandbox back for the next lease of the same key, or ends it when it is dead, used up or not needed any
   * more; then it resolves when the sandbox is gone. The caller has it wiped before. Never rejects.
   */
  release(): Promise<void>
  /** Ends the sandbox: for one in a state that nobody else may meet. Resolves when it is gone. Never rejects. */
  destroy(): Promise<void>
}

/** What a lease stands on. It must not lead to the lease, or that could never be found abandoned. */
export interface Holding {
  readonly sandbox: Sandbox
  readonly use: number
  readonly key: string
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
      destroy: () => end('destroyed'),
      [Symbol.asyncDispose]: () => end('released'),
    }
    abandoned.register(lease, holding, token)
    return lease
  }
}
