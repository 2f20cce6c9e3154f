import { type EngineName, type EngineOptions, type EngineTable, ENGINES } from '../engines/index.ts'
import type { EnvironmentOptions } from '../environments/index.ts'
import { SandglassError } from '../errors/index.ts'
import { type ApprovalOptions, checkApprovalOptions } from '../review/index.ts'
import { REQUIREMENTS, type Requirement, type ResourceLimits, type SandboxEngine } from '../sandbox/index.ts'
import { refuseUnknown } from '../support/index.ts'
import { unknownValueError } from './unknown-value.ts'

/** The options of `createSandglass`; all have defaults. */
export interface SandglassOptions extends EngineOptions, ApprovalOptions {
  /**
   * Default `auto`: the first of `local` (Linux, bubblewrap), `docker` (containers) and `pyodide` (anywhere; without
   * bubblewrap isolated by the language alone) that starts here and meets `require`.
   */
  readonly engine?: 'auto' | EngineName | SandboxEngine
  /**
   * Defaults for every run; a run may have its own. A limit that the machine cannot enforce is refused. Each result
   * lists the limits in force.
   */
  readonly limits?: ResourceLimits
  /** Warm sandboxes kept per set of limits, without successors (`maxUses`). Default 2. */
  readonly poolSize?: number
  /** Sandboxes made above that: on demand, and as successors. Default 2. */
  readonly maxOverflow?: number
  /**
   * Scripts after which a sandbox is replaced. Default 1,000; 1 gives every script a sandbox of its own. From 3 on, the next sandbox is
   * made before the last tenth of them, at most 50, if `maxOverflow` allows one more. Both stay until those are used up.
   */
  readonly maxUses?: number
  /**
   * The memory in bytes that idle sandboxes may take together. Above it, the idle sandboxes of the sets of limits or packages that
   * were least recently used are ended. Default 1 GiB.
   */
  readonly maxIdleBytes?: number
  /** The time that a run waits for a sandbox, in milliseconds. Default 30,000. */
  readonly checkoutTimeoutMs?: number
  /**
   * Packages that scripts can import, as `pip` names them (`pandas>=2`): wheels from the package index, installed once and
   * kept in a cache. Nothing of a package is executed outside of a sandbox. In place of `packages`.
   */
  readonly dependencies?: readonly string[]
  /** The cache of packages, its index, and what scripts may name themselves. */
  readonly environments?: EnvironmentOptions
  /** A directory filled by `pip install --target`, or a virtual environment's site-packages: importable, read-only. */
  readonly packages?: string
  /** A directory of Python files whose functions become globals of every script. */
  readonly toolsDir?: string
  /** Modules imported once per sandbox, before any script. */
  readonly preload?: readonly string[]
  /** Items that must be in force; a missing one is an error before any script runs. */
  readonly require?: readonly Requirement[]
  /** Cancels the start of the first sandbox; later it has no effect. */
  readonly signal?: AbortSignal
}

/**
 * Checks the options of `createSandglass` that no lower room checks.
 * @throws TypeError for an option that does not exist or an invalid option of approvals; SandglassError `invalid_request`, naming the option.
 */
export function checkOptions(options: SandglassOptions, engines: EngineTable = ENGINES): void {
  refuseUnknown('createSandglass', options, [...SANDGLASS_OPTIONS, ...Object.keys(engines)])
  checkApprovalOptions(options)
  for (const item of options.require ?? []) {
    if (!REQUIREMENTS.includes(item)) throw unknownValueError('require', 'requirement', item, REQUIREMENTS)
  }
  for (const name of options.preload ?? []) {
    if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(name)) {
      throw new SandglassError(
        'invalid_request',
        `preload: ${JSON.stringify(name)} is not a module name such as numpy or matplotlib.pyplot`,
      )
    }
  }
}

/** The options of `createSandglass` without those of the engines. */
const SANDGLASS_OPTIONS: readonly Exclude<keyof SandglassOptions, EngineName>[] = [
  'engine',
  'limits',
  'poolSize',
  'maxOverflow',
  'maxUses',
  'maxIdleBytes',
  'checkoutTimeoutMs',
  'dependencies',
  'environments',
  'packages',
  'toolsDir',
  'preload',
  'require',
  'approveWrites',
  'approvalTimeoutMs',
  'onPending',
  'signal',
]
