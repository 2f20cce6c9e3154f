import { resolve } from 'node:path'
import type { PreparedEnvironment } from './environments/index.ts'
import type { RunOptions, SandglassOptions } from './options/index.ts'
import type { CheckoutOptions } from './pool/index.ts'
import {
  type ResourceLimits,
  resolveLimits,
  sandboxLimits,
  type SandboxEngine,
  type SandboxSpec,
} from './sandbox/index.ts'
import { definedOf } from './support/index.ts'

/** The limits that each run has for itself; the others are those of its sandbox. */
export function limitsOfRun(given: ResourceLimits): ResourceLimits {
  return definedOf(resolveLimits(given), ['executionTimeoutSec', 'maxToolWaitSec', 'maxOutputBytes'])
}

/** Identifies an engine and its options. Sandboxes with the same id have the same Python until another one is installed. */
export function engineIdOf({ name, place }: SandboxEngine, options: SandglassOptions): string {
  const own = (options as Readonly<Record<string, unknown>>)[name]
  return JSON.stringify([name, own ?? null, place ?? null])
}

/** The sandboxes that runs with these limits and packages need. */
export function specOf(
  options: SandglassOptions,
  limits: ResourceLimits | undefined,
  prepared: PreparedEnvironment | undefined,
): SandboxSpec {
  const packages =
    prepared?.environment.path ?? (options.packages === undefined ? undefined : resolve(options.packages))
  return {
    limits: sandboxLimits(resolveLimits({ ...options.limits, ...limits })),
    ...(packages === undefined ? {} : { packages }),
    ...(options.toolsDir === undefined ? {} : { toolsDir: resolve(options.toolsDir) }),
    ...(options.preload === undefined ? {} : { preload: options.preload }),
  }
}

/**
 * The name of a spec in the pool: its limits and, with packages, these and the modules loaded ahead. Everything else in a spec is the
 * same for one Sandglass.
 */
export function nameOf(spec: SandboxSpec): string {
  const { memoryBytes, cpus, pids, diskBytes } = spec.limits
  const packages = spec.packages === undefined ? '' : ` packages=${spec.packages} preload=${spec.preload?.join(',')}`
  return `memory=${memoryBytes} cpus=${cpus} pids=${pids} disk=${diskBytes}${packages}`
}

/** The options of a run that concern its lease. */
export function checkoutOptions({ leaseKey, checkoutTimeoutMs, ...run }: RunOptions): CheckoutOptions {
  return {
    ...(leaseKey === undefined ? {} : { key: leaseKey }),
    ...(checkoutTimeoutMs === undefined ? {} : { timeoutMs: checkoutTimeoutMs }),
    ...definedOf(run, ['sandboxId', 'signal']),
  }
}
