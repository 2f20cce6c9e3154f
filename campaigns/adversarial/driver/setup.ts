import type { RunOptions } from '../../../src/options/index.ts'
import type { Runner } from './answer.ts'
import type { Verify, Watch } from './case-state.ts'
import type { OpenOptions } from './engine.ts'
import type { Fixtures } from './fixtures.ts'
import type { HostStart } from './host-process.ts'

/** Implements the `setup` text of a case, and the part of `expected` that has no keys. */
export interface Setup {
  /** Number of times that the case runs, one after the other. */
  readonly repeat?: number
  /** Options of the Sandglass. The case then has its own one. */
  readonly open?: (fixtures: Fixtures) => OpenOptions
  /** Options of each run. */
  readonly run?: (fixtures: Fixtures) => RunOptions
  /** Tools of each run that use the runner of the case. */
  readonly tools?: (runner: Runner) => NonNullable<RunOptions['tools']>
  /** Start options of a separate host process for the case. */
  readonly child?: (fixtures: Fixtures) => HostStart
  /** Prepares something before or during the case, and checks it afterwards. */
  readonly beside?: Watch
  /** Checks the part of `expected` that has no key. */
  readonly expect?: Verify
}
