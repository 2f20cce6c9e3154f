import { SandglassError } from '../errors/index.ts'
import type { HostFrame } from '../protocol/index.ts'
import { type ResourceLimits, resolveLimits, type Sandbox, type SandboxLimits } from '../sandbox/index.ts'

type LesserLimits = Extract<HostFrame, { type: 'execute' }>['limits']

/** The limits of an executor: its own, and those that a sandbox must enforce. */
export interface RunLimits {
  readonly timeoutSec: number
  readonly maxToolWaitSec: number
  readonly maxOutputBytes: number
  /** Only the limits that the caller gave; the sandbox's own apply otherwise. */
  readonly asked: Partial<SandboxLimits>
}

/** The largest possible memory limit, so that a disk limit alone is checked for its range only. */
const ANY_MEMORY = 1024 ** 4

/**
 * Checks each limit by itself; the sandbox spec checks that they fit together.
 * @throws SandglassError `invalid_request`; TypeError for a limit that does not exist.
 */
export function checkLimits(given: ResourceLimits): RunLimits {
  const { memoryBytes, ...others } = given
  const { executionTimeoutSec, maxToolWaitSec, maxOutputBytes } = resolveLimits({ ...others, memoryBytes: ANY_MEMORY })
  if (memoryBytes !== undefined) resolveLimits({ memoryBytes })
  const { cpus, pids, diskBytes } = given
  return {
    timeoutSec: executionTimeoutSec,
    maxToolWaitSec,
    maxOutputBytes,
    asked: {
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
      ...(cpus === undefined ? {} : { cpus }),
      ...(pids === undefined ? {} : { pids }),
      ...(diskBytes === undefined ? {} : { diskBytes }),
    },
  }
}

/**
 * Returns the limits that the harness must enforce so that a run gets less than its sandbox has.
 * @throws SandglassError `limit_not_enforceable` for more than the sandbox has, and for a limit that cannot be changed
 * for one run: the disk limit, and on some engines the CPU limit.
 */
export function lesserLimits(asked: Partial<SandboxLimits>, sandbox: Sandbox): LesserLimits {
  const has = sandbox.info.limits
  for (const name of ['memoryBytes', 'pids', 'cpus'] as const) {
    if ((asked[name] ?? 0) > has[name]) throw notEnforceable(name, asked, has, 'a run may only request less')
  }
  const fixed = sandbox.lowerCpuLimit === undefined ? (['cpus', 'diskBytes'] as const) : (['diskBytes'] as const)
  for (const name of fixed) {
    if ((asked[name] ?? has[name]) !== has[name]) {
      throw notEnforceable(name, asked, has, 'it cannot be changed for one run')
    }
  }
  const { memoryBytes = has.memoryBytes, pids = has.pids } = asked
  return {
    ...(memoryBytes < has.memoryBytes ? { memory_bytes: memoryBytes } : {}),
    ...(pids < has.pids ? { pids } : {}),
  }
}

function notEnforceable(
  name: keyof SandboxLimits,
  asked: Partial<SandboxLimits>,
  has: SandboxLimits,
  why: string,
): SandglassError {
  return new SandglassError(
    'limit_not_enforceable',
    `limits.${name}: ${asked[name]} was requested of a sandbox that has ${has[name]}, and ${why}; ` +
      `use a sandbox whose spec has ${name} ${asked[name]}`,
  )
}
