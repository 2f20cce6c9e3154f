import type { Sandbox } from '../sandbox/index.ts'

const TIMEOUT_MS = 5_000

/**
 * True if a sandbox answers; a rejection and 5 s without an answer count as no. Never rejects, never calls back
 * synchronously.
 */
export async function isResponsive(
  isHealthy: (sandbox: Sandbox) => Promise<boolean>,
  sandbox: Sandbox,
): Promise<boolean> {
  const { promise: silence, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), TIMEOUT_MS)
  try {
    const answer = Promise.resolve().then(() => isHealthy(sandbox))
    return await Promise.race([answer, silence])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
  }
}
