import type { RunOptions } from '../../../src/options/index.ts'
import type { Answer, Runner } from './answer.ts'
import type { AcceptanceCase } from './case.ts'
import type { EngineUnderTest } from './engine.ts'
import type { Fixtures } from './fixtures.ts'

/** State that the cases of one engine share. */
export interface CaseContext {
  readonly engine: EngineUnderTest
  readonly fixtures: Fixtures
  /** A warm Sandglass for cases that do not need one of their own. */
  readonly shared: Runner
}

/** One case while it is being run and evaluated. */
export interface CaseState {
  readonly case: AcceptanceCase
  readonly context: CaseContext
  /** Runs the scripts of the case. */
  readonly runner: Runner
  /** The warm sandbox of the case and its number of processes when idle; undefined on the shared runner. */
  readonly warm: { readonly sandboxId: string; readonly processes: number } | undefined
  /** Options for each run of the case. */
  readonly options: RunOptions
  /** Memory growth of this process during the case, in MiB. */
  readonly growth: { mebibytes: number }
}

/** A description of the failed check; undefined when the check passed. */
export type Problem = string | undefined

/** Checks the answers of a case and the state of the host after it. */
export type Verify = (answers: readonly Answer[]) => Promise<Problem> | Problem

/** Prepares a check before the case runs; the returned function checks afterwards. */
export type Watch = (state: CaseState) => Promise<Verify> | Verify

/** The first problem of several. */
export function firstOf(problems: readonly Problem[]): Problem {
  return problems.find((problem) => problem !== undefined)
}
