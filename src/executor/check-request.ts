import type { CheckedTool } from '../protocol/index.ts'
import type { ExecutionMode, Violation } from './result.ts'

/**
 * The strictness of the check before a script runs: `standard` finds mistakes (syntax, names, calls of tools), `strict`
 * also refuses what could reach beyond plain computing, `off` checks nothing. The sandbox isolates scripts under every policy.
 */
export type Policy = 'off' | 'standard' | 'strict'

/** One script to check without running any of it. */
export interface CheckRequest {
  readonly script: string
  /** `off` only decides whether `whole` is the script. */
  readonly policy: Policy
  /** The text in which the script was found. If it is Python with an effect, it is checked in place of the script. */
  readonly whole?: string
  /** In `plan`, a script without a result is a violation. Default `interactive`. */
  readonly mode?: ExecutionMode
  readonly executionId?: string
  /** Names that exist in addition to builtins, helpers and tools: inputs. */
  readonly names?: readonly string[]
  /** Modules that `strict` admits in addition to its own. */
  readonly allowModules?: readonly string[]
  /** True if the script has files to read, or its files are collected: `strict` then admits `open` and modules for files. */
  readonly hasFiles?: boolean
  readonly tools?: readonly CheckedTool[]
  /** Asks for the tools that the script may call, under any policy. */
  readonly listTools?: boolean
  /** Code that runs before the script: not checked, but the names that it binds are known. */
  readonly preamble?: string
  readonly postamble?: string
  readonly signal?: AbortSignal
}

/** The answer of the checker: the data of its run. */
export interface CheckAnswer {
  readonly violations: readonly Violation[]
  /** True if `whole` of the request is the script. */
  readonly isWhole: boolean
  /** The names of the tools that the script's text calls; undefined without `listTools`, or without an answer of the checker. */
  readonly calledTools: readonly string[] | undefined
}
