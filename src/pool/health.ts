import type { Sandbox } from '../sandbox/index.ts'

const PATIENCE_MS = 5_000

/** True if a sandbox answers; a rejection and 5 s of silence count as a no. Never rejects, never calls back synchronously. */
export async function answers(isHealthy: (sandbox: Sandbox) => Promise<boolean>, sandbox: Sandbox): Promise<boolean> {
  const { promise: silence, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), PATIENCE_MS)
  try {
    const answer = Promise.resolve().then(() => isHealthy(sandbox))
    return await Promise.race([answer, silence])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
  }
}
