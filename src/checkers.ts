import { SandglassError } from './errors/index.ts'
import { checkScript, type CheckedScript, type CheckRequest } from './executor/index.ts'
import { SandboxPool } from './pool/index.ts'
import type { SandboxEngine, SandboxSpec } from './sandbox/index.ts'

/** Checks that one checker sandbox makes before it is replaced. It runs no script, so nothing wears it out. */
const MAX_USES = 10_000
const SPEC = 'checker'

/** Sandboxes that check scripts and run none, beside the leases of the runs. The first check makes the first. */
export interface Checkers {
  check(request: CheckRequest, timeoutMs: number | undefined): Promise<CheckedScript>
  close(): Promise<void>
}

/** Keeps one checker sandbox warm, with another while that one is busy. */
export function checkersOf(engine: SandboxEngine, spec: SandboxSpec): Checkers {
  let pool: SandboxPool | undefined
  let closed = false
  const open = (): SandboxPool =>
    new SandboxPool({
      engine,
      specs: { [SPEC]: { ...spec, checker: true } },
      poolSize: 1,
      maxOverflow: 1,
      maxUses: MAX_USES,
    })
  return {
    async check(request, timeoutMs) {
      if (closed) throw new SandglassError('pool_closed', 'this Sandglass is closed; make another one')
      const { signal } = request
      const lease = await (pool ??= open()).checkout(SPEC, {
        ...(signal === undefined ? {} : { signal }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      })
      try {
        return await checkScript({ ...request, sandbox: lease.sandbox })
      } finally {
        void lease.release()
      }
    },
    async close() {
      closed = true
      await pool?.close()
    },
  }
}
