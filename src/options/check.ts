import type { ExecutionMode, Policy } from '../executor/index.ts'
import { refuseUnknown } from '../support/index.ts'
import type { ToolsInput } from '../tools/index.ts'

/** Options of `Sandglass.check`. */
export interface CheckOptions {
  /** Default `standard`. */
  readonly policy?: Exclude<Policy, 'off'>
  /** Default `interactive`. With `plan` a script that gives no result has a mistake. */
  readonly mode?: ExecutionMode
  /** Functions that the script will have. */
  readonly tools?: ToolsInput
  /** Inputs that the script will have; only their names count. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** Files that the script will have; only their paths count. */
  readonly files?: Readonly<Record<string, unknown>>
  /** Globs of the files that will be collected. */
  readonly collect?: readonly string[]
  /** Packages of the run that the check is for. */
  readonly dependencies?: readonly string[]
  /** Modules that the policy `strict` admits in addition to its own. */
  readonly allowModules?: readonly string[]
  /** Cancels the check. */
  readonly signal?: AbortSignal
}

/**
 * Checks the options of `check`.
 * @throws TypeError for an option that does not exist.
 */
export function checkCheckOptions(options: CheckOptions): void {
  refuseUnknown('check', options, CHECK_OPTIONS)
}

const CHECK_OPTIONS: readonly (keyof CheckOptions)[] = [
  'policy',
  'mode',
  'tools',
  'inputs',
  'files',
  'collect',
  'dependencies',
  'allowModules',
  'signal',
]
