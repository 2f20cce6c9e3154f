import { SandglassError } from '../errors/index.ts'

/**
 * Waits for shared work: an abort ends the wait, not the work.
 * @param during the activity, for the message: `aborted while …`.
 * @throws SandglassError `aborted`, and what the work throws.
 */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined, during: string): Promise<T> {
  if (signal === undefined) return work
  const { promise: interrupted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(new SandglassError('aborted', `aborted while ${during}`))
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  work.catch(() => undefined) // if the signal fires first, no other caller may handle the rejection
  try {
    return await Promise.race([work, interrupted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
