import { SandglassError } from '../errors/index.ts'
import type { EnforcedLimit, SandboxInfo } from './contract.ts'
import type { ResourceLimits, SandboxLimits } from './limits.ts'

const LIMIT_OF: Readonly<Record<keyof SandboxLimits, EnforcedLimit>> = {
  memoryBytes: 'memory',
  cpus: 'cpu',
  pids: 'pids',
  diskBytes: 'disk',
}

/**
 * Throws if a requested limit is not in force in a sandbox. Ignores limits left at their default: each result lists the limits
 * in force.
 * @throws SandglassError `limit_not_enforceable`, naming the limit and the remedy.
 */
export function assertEnforced({ engine, limitsEnforced, limitsMissing }: SandboxInfo, asked: ResourceLimits): void {
  for (const name of Object.keys(LIMIT_OF) as (keyof SandboxLimits)[]) {
    const limit = LIMIT_OF[name]
    if (asked[name] === undefined || limitsEnforced.includes(limit)) continue
    throw new SandglassError(
      'limit_not_enforceable',
      `limits.${name}: the engine ${engine} cannot enforce it on this machine: ` +
        (limitsMissing?.[limit] ?? 'leave the limit out, or choose another engine'),
    )
  }
}
