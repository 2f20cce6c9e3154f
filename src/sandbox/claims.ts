import { SandglassError } from '../errors/index.ts'
import type { Channel, Sandbox } from './contract.ts'

/** A run's hold on the sandbox that it uses. */
export interface Claim {
  /** Fires when the sandbox is no longer leased to the run. */
  readonly revoked: AbortSignal
  /** Ends the hold, when the run is over. */
  free(): void
}

/*
 * A channel has one reader at a time, and executors and pools do not know of each other. This map acts as a private field of each
 * channel; it is separate because the classes of channels belong to the engines. An entry ends with its channel. By channel, not by sandbox, because a lease may wrap a sandbox.
 */
const claims = new WeakMap<Channel, AbortController>()

/**
 * Takes the channel of a sandbox for one run.
 * @throws SandglassError `sandbox_busy`
 */
export function claim({ id, channel }: Sandbox): Claim {
  if (claims.has(channel)) {
    throw new SandglassError(
      'sandbox_busy',
      `the sandbox ${id} is already running a script; wait for that run to settle or take another sandbox`,
    )
  }
  const revocation = new AbortController()
  claims.set(channel, revocation)
  return { revoked: revocation.signal, free: () => void claims.delete(channel) }
}

/** Cancels the run that uses a sandbox. The sandbox must not be used again. Returns false if there is no such run. */
export function revokeClaim({ channel }: Sandbox): boolean {
  const revocation = claims.get(channel)
  revocation?.abort()
  return revocation !== undefined
}
