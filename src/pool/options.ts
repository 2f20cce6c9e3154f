import type { Sandbox, SandboxEngine, SandboxSpec } from '../sandbox/index.ts'
import { formatValue, MAX_TIMER_MS } from '../support/index.ts'

/** The options of a {@link SandboxPool}. */
export interface PoolOptions {
  /** Makes the sandboxes. The pool does not close it. */
  readonly engine: SandboxEngine
  /** Sandbox specs by the name that `checkout` takes. More can follow by `addSpec`. */
  readonly specs: Readonly<Record<string, SandboxSpec>>
  /** Sandboxes kept per spec, leased ones included, successors not. Default 2; 0 keeps none: every checkout creates. */
  readonly poolSize?: number
  /** Sandboxes per spec made above `poolSize`: on demand, and as successors. Default 2. */
  readonly maxOverflow?: number
  /** Maximum time that a checkout waits, in milliseconds. Default 30,000. */
  readonly checkoutTimeoutMs?: number
  /**
   * Leases after which a sandbox is retired. Default 1,000; 1 gives every lease a sandbox of its own. From 3 on, its successor is
   * made beside it before the last tenth of them, at most 50, if `maxOverflow` allows one more. Both stay until those are used up.
   */
  readonly maxUses?: number
  /**
   * The memory in bytes that all idle sandboxes may take together. Above it, `occasional` specs give theirs up, the one used
   * least recently first. Default 1 GiB.
   */
  readonly maxIdleBytes?: number
  /** A sandbox idle for at least this many milliseconds is checked by `isHealthy` first. Default 30,000. */
  readonly healthCheckAfterIdleMs?: number
  /** True if an idle sandbox still answers. A rejection, or no answer for 5 s, counts as false. Default: no check. */
  readonly isHealthy?: (sandbox: Sandbox) => Promise<boolean>
}

/** The options of one checkout. */
export interface CheckoutOptions {
  /** Only leases of the same key share a sandbox. Default: one key for the whole pool instance. */
  readonly key?: string
  /** Asks for this sandbox, if it lives and has the same key; otherwise any sandbox will do. */
  readonly sandboxId?: string
  /** Cancels the checkout. */
  readonly signal?: AbortSignal
  /** In place of the pool's `checkoutTimeoutMs`, in milliseconds. */
  readonly timeoutMs?: number
}

/** Options of a pool with every default in place; `isHealthy` stays optional. */
export type ResolvedPoolOptions = Required<Omit<PoolOptions, 'isHealthy' | 'specs'>> & Pick<PoolOptions, 'isHealthy'>

const MAX_IDLE_BYTES = 1024 ** 3

const KNOWN_OPTIONS: readonly string[] = [
  'engine',
  'specs',
  'poolSize',
  'maxOverflow',
  'checkoutTimeoutMs',
  'maxUses',
  'maxIdleBytes',
  'healthCheckAfterIdleMs',
  'isHealthy',
] satisfies readonly (keyof PoolOptions)[]

/**
 * Checks every option and fills in the defaults.
 * @throws TypeError naming the option.
 */
export function resolvePoolOptions(given: PoolOptions): ResolvedPoolOptions {
  for (const name of Object.keys(given)) {
    if (!KNOWN_OPTIONS.includes(name)) {
      throw new TypeError(`${name}: unknown option of SandboxPool; the options are ${KNOWN_OPTIONS.join(', ')}`)
    }
  }
  if (typeof given.engine?.create !== 'function') throw new TypeError('engine: must be a SandboxEngine')
  if (typeof given.specs !== 'object' || given.specs === null) {
    throw new TypeError('specs: must be an object of sandbox specs by name')
  }
  if (given.isHealthy !== undefined && typeof given.isHealthy !== 'function') {
    throw new TypeError('isHealthy: must be a function')
  }
  const poolSize = checkCount('poolSize', given.poolSize ?? 2, 0)
  const maxOverflow = checkCount('maxOverflow', given.maxOverflow ?? 2, 0)
  if (poolSize + maxOverflow < 1) throw new TypeError('maxOverflow: must be at least 1 when poolSize is 0')
  return {
    engine: given.engine,
    poolSize,
    maxOverflow,
    checkoutTimeoutMs: checkTimerMs('checkoutTimeoutMs', given.checkoutTimeoutMs ?? 30_000),
    maxUses: checkCount('maxUses', given.maxUses ?? 1000, 1),
    maxIdleBytes: checkCount('maxIdleBytes', given.maxIdleBytes ?? MAX_IDLE_BYTES, 0),
    healthCheckAfterIdleMs: checkDuration('healthCheckAfterIdleMs', given.healthCheckAfterIdleMs ?? 30_000),
    ...(given.isHealthy === undefined ? {} : { isHealthy: given.isHealthy }),
  }
}

const LIMITS = ['memoryBytes', 'cpus', 'pids', 'diskBytes'] as const satisfies readonly (keyof SandboxSpec['limits'])[]

/**
 * Checks that limits of a sandbox are complete: an engine passes them to the kernel unchanged.
 * @throws TypeError naming the limit.
 */
export function checkLimits(name: string, limits: unknown): void {
  if (typeof limits !== 'object' || limits === null) {
    throw new TypeError(`${name}: must be an object with ${LIMITS.join(', ')}`)
  }
  for (const limit of LIMITS) {
    const value: unknown = Reflect.get(limits, limit)
    if (typeof value === 'number' && value > 0) continue
    throw new TypeError(
      `${name}.${limit}: ${formatValue(value)} is not a number above 0; a spec has each of ${LIMITS.join(', ')}`,
    )
  }
}

/**
 * Checks a time in milliseconds that a timer can wait, and returns it.
 * @throws TypeError naming the option.
 */
export function checkTimerMs(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0 && value <= MAX_TIMER_MS)) {
    throw new TypeError(`${name}: ${String(value)} is not a number of milliseconds from 0 to ${MAX_TIMER_MS}`)
  }
  return value
}

function checkDuration(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0)) {
    throw new TypeError(`${name}: ${String(value)} is not a number of milliseconds of at least 0`)
  }
  return value
}

function checkCount(name: string, value: unknown, min: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min) {
    throw new TypeError(`${name}: ${String(value)} is not a whole number of at least ${min}`)
  }
  return value
}
