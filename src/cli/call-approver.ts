import type { Sandglass } from '../index.ts'
import type { PendingCall } from '../review/index.ts'

/** Asks about calls of tools that need approval, and passes the answers on. */
export interface CallApprover {
  readonly onPending: (calls: readonly PendingCall[]) => Promise<void>
  /** The library whose calls these are. Set after its start, since its options need {@link onPending}. */
  sandglass: Pick<Sandglass, 'approve' | 'deny'> | undefined
}
