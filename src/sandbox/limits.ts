import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'

const MiB = 1024 * 1024

/** Limits that belong to the sandbox itself; they are part of the pool key. */
export interface SandboxLimits {
  /** Memory of everything in the sandbox together, tmpfs pages included. */
  readonly memoryBytes: number
  /** CPU time per wall time: 0.5 is half a core. */
  readonly cpus: number
  /** Processes and threads together. */
  readonly pids: number
  /** Size of the workspace; /tmp, /dev/shm and /var/tmp get 1/4, 1/4 and 1/16 of it on top. */
  readonly diskBytes: number
}

/** Limits of the sandbox and of one run, as a caller gives them. */
export interface ResourceLimits extends Partial<SandboxLimits> {
  /** Wall clock for one script, in seconds, without the time in which tools of the host execute. Default 30, at most 86,400. */
  readonly executionTimeoutSec?: number
  /**
   * The time in seconds by which calls of host tools may move the end of one script, in total: the time in which they execute
   * on the host, minus the CPU time that the script uses meanwhile. Default 300, at most 86,400; 0 moves nothing.
   */
  readonly maxToolWaitSec?: number
  /**
   * Bytes that one run sends, without collected files: the text of stdout and stderr, and results, intermediates, logs and
   * errors as frames. Default 1 MiB, at most 4 GiB.
   */
  readonly maxOutputBytes?: number
}

/** The defaults of the contract. */
export const DEFAULT_LIMITS: Required<ResourceLimits> = {
  executionTimeoutSec: 30,
  maxToolWaitSec: 300,
  maxOutputBytes: MiB,
  memoryBytes: 512 * MiB,
  cpus: 1,
  pids: 128,
  diskBytes: 128 * MiB,
}

/** Memory that no tmpfs can use, so that filling all of them cannot get the harness killed. */
const MEMORY_RESERVE = 64 * MiB
const TMPFS_PER_DISK = 1 + 1 / 4 + 1 / 4 + 1 / 16

/** Sizes in bytes of each writable file system of a sandbox. */
export function scratchSizes(diskBytes: number): { workspace: number; tmp: number; shm: number; varTmp: number } {
  return {
    workspace: Math.floor(diskBytes),
    tmp: Math.floor(diskBytes / 4),
    shm: Math.floor(diskBytes / 4),
    varTmp: Math.floor(diskBytes / 16),
  }
}

/**
 * The memory that gVisor itself needs, in bytes, beside the limit of a sandbox: its kernel counts towards the same control group.
 * docs/limitations/gvisor.md says what remains for a script.
 */
export function gvisorMemoryBytes({ pids }: Pick<SandboxLimits, 'pids'>): number {
  return 32 * MiB + (pids * MiB) / 4
}

const RANGES = {
  memoryBytes: { min: 80 * MiB, max: 1024 * 1024 * MiB, integer: true, what: 'bytes' },
  cpus: { min: 0.05, max: 1024, integer: false, what: 'CPUs' },
  pids: { min: 8, max: 32_768, integer: true, what: 'processes' },
  diskBytes: { min: MiB, max: 1024 * 1024 * MiB, integer: true, what: 'bytes' },
  executionTimeoutSec: { min: 0.001, max: 86_400, integer: false, what: 'seconds' },
  maxToolWaitSec: { min: 0, max: 86_400, integer: false, what: 'seconds' },
  maxOutputBytes: { min: 1, max: 4096 * MiB, integer: true, what: 'bytes' },
} as const

/**
 * Checks every limit, fills in the defaults and refuses a disk that does not fit into the memory. The default disk limit
 * shrinks if the memory limit leaves less.
 * @throws SandglassError `invalid_request` or `limits_do_not_fit`, naming the limit.
 */
export function resolveLimits(given: ResourceLimits = {}): Required<ResourceLimits> {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(RANGES, name)) continue
    throw new TypeError(`limits.${name}: unknown limit; the limits are ${Object.keys(RANGES).join(', ')}`)
  }
  const memoryBytes = checkLimit('memoryBytes', given.memoryBytes)
  const room = Math.floor((memoryBytes - MEMORY_RESERVE) / TMPFS_PER_DISK)
  const diskBytes =
    given.diskBytes === undefined ? Math.min(DEFAULT_LIMITS.diskBytes, room) : checkLimit('diskBytes', given.diskBytes)
  if (diskBytes > room) {
    throw new SandglassError(
      'limits_do_not_fit',
      `limits: a disk of ${diskBytes} bytes does not fit into a memory of ${memoryBytes} bytes, because files live in ` +
        `memory: the disk can be at most ${room} bytes ((memory - 64 MiB) / ${TMPFS_PER_DISK}); ` +
        `lower diskBytes or raise memoryBytes to ${Math.ceil(diskBytes * TMPFS_PER_DISK) + MEMORY_RESERVE}`,
    )
  }
  return {
    memoryBytes,
    diskBytes,
    cpus: checkLimit('cpus', given.cpus),
    pids: checkLimit('pids', given.pids),
    executionTimeoutSec: checkLimit('executionTimeoutSec', given.executionTimeoutSec),
    maxToolWaitSec: checkLimit('maxToolWaitSec', given.maxToolWaitSec),
    maxOutputBytes: checkLimit('maxOutputBytes', given.maxOutputBytes),
  }
}

function checkLimit(name: keyof typeof RANGES, value: unknown): number {
  if (value === undefined) return DEFAULT_LIMITS[name]
  const { min, max, integer, what } = RANGES[name]
  if (typeof value !== 'number' || !(value >= min && value <= max) || (integer && !Number.isInteger(value))) {
    throw new SandglassError(
      'invalid_request',
      `limits.${name}: ${formatValue(value)} is not ${integer ? 'a whole number' : 'a number'} of ${what} from ${min} to ${max}`,
    )
  }
  return value
}

/** The part of resolved limits that belongs to the sandbox. */
export function sandboxLimits(limits: Required<ResourceLimits>): SandboxLimits {
  const { memoryBytes, cpus, pids, diskBytes } = limits
  return { memoryBytes, cpus, pids, diskBytes }
}
