import type { RunOptions } from '../../../src/options.ts'
import type { Answer, Runner } from './answer.ts'
import type { AcceptanceCase } from './case.ts'
import type { EngineUnderTest } from './engine.ts'
import type { Fixtures } from './fixtures.ts'

/** What all cases of one engine share. */
export interface Ground {
  readonly engine: EngineUnderTest
  readonly fixtures: Fixtures
  /** A warm Sandglass for the cases that need none of their own. */
  readonly shared: Runner
}

/** One case in action. */
export interface Stage {
  readonly case: AcceptanceCase
  readonly ground: Ground
  /** What the case runs on. */
  readonly runner: Runner
  /** The warm sandbox that the case meets, and how many processes it has at rest; absent on the shared runner. */
  readonly warm: { readonly sandboxId: string; readonly processes: number } | undefined
  /** Options that each run of the case is given. */
  readonly options: RunOptions
  /** How much this process grew while the case ran, in MiB. */
  readonly growth: { mebibytes: number }
}

/** What was wrong, in words; undefined when nothing was. */
export type Problem = string | undefined

/** Looks at the answers of a case, and at what is left of it. */
export type Verify = (answers: readonly Answer[]) => Promise<Problem> | Problem

/** Prepares before a case runs, and gives what looks at it afterwards. */
export type Watch = (stage: Stage) => Promise<Verify> | Verify

/** The first problem of several. */
export function firstOf(problems: readonly Problem[]): Problem {
  return problems.find((problem) => problem !== undefined)
}
