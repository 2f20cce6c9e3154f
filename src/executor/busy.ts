import { SandglassError } from '../errors/index.ts'
import type { Channel, Sandbox } from '../sandbox/index.ts'

/*
 * A channel has one reader at a time, and executors do not know each other. This set is a private field of the channels
 * themselves, kept beside them because their classes belong to the engines: it holds no decision, names no instance and
 * ends with the channel. By channel, not by sandbox, because a lease may wrap a sandbox.
 */
const inUse = new WeakSet<Channel>()

/**
 * Takes the channel of a sandbox for one run; gives back a function that frees it.
 * @throws SandglassError `sandbox_busy`
 */
export function claim(sandbox: Sandbox): () => void {
  const { channel } = sandbox
  if (inUse.has(channel)) {
    throw new SandglassError(
      'sandbox_busy',
      `the sandbox ${sandbox.id} is already running a script; wait for that run to settle or take another sandbox`,
    )
  }
  inUse.add(channel)
  return () => {
    inUse.delete(channel)
  }
}
