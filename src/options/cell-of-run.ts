import { definedOf } from '../support/index.ts'
import type { RunOptions } from './run.ts'
import { type CellOptions, SHARED_OPTIONS } from './session.ts'

/** The options of a run that can be those of a cell; of `limits` the timeout and the output. */
export const RUN_OPTIONS_OF_CELLS: readonly (keyof RunOptions)[] = [...SHARED_OPTIONS, 'limits']

/** The options of a cell in place of those of a run; what no cell can have is left out. */
export function cellOptionsOf(run: RunOptions): CellOptions {
  const { executionTimeoutSec: timeoutSec, maxOutputBytes } = run.limits ?? {}
  return { ...definedOf(run, SHARED_OPTIONS), ...definedOf({ timeoutSec, maxOutputBytes }, OF_LIMITS) }
}

/** The options of the run that a cell is. */
export function runOptionsOf(cell: CellOptions): RunOptions {
  const { timeoutSec: executionTimeoutSec, maxOutputBytes } = cell
  const shared = definedOf(cell, OF_RUN)
  if (executionTimeoutSec === undefined && maxOutputBytes === undefined) return shared
  const limits = { executionTimeoutSec, maxOutputBytes }
  return { ...shared, limits: definedOf(limits, ['executionTimeoutSec', 'maxOutputBytes']) }
}

const OF_RUN = [...SHARED_OPTIONS, 'executionId'] as const

const OF_LIMITS = ['timeoutSec', 'maxOutputBytes'] as const
