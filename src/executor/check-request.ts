import type { CheckedTool } from '../protocol/index.ts'
import type { ExecutionMode } from './result.ts'

/**
 * How strictly a script is checked before it runs: `standard` finds mistakes (syntax, names, calls of tools), `strict`
 * also refuses what could reach beyond plain computing, `off` checks nothing. The wall is the sandbox, whatever the policy.
 */
export type Policy = 'off' | 'standard' | 'strict'

/** One script to check without running any of it. */
export interface CheckRequest {
  readonly script: string
  readonly policy: Exclude<Policy, 'off'>
  /** In `plan` a script that gives no result is wrong. Default `interactive`. */
  readonly mode?: ExecutionMode
  readonly executionId?: string
  /** Names that will be there beside builtins, helpers and tools: inputs. */
  readonly names?: readonly string[]
  /** Modules that `strict` admits beside its own. */
  readonly allowModules?: readonly string[]
  readonly tools?: readonly CheckedTool[]
  /** What is run around the script: not checked, but what it binds is there. */
  readonly preamble?: string
  readonly postamble?: string
  readonly signal?: AbortSignal
}
