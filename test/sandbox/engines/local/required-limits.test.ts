import { expect, test } from 'vitest'
import { localEngine } from '../../../../src/engines/local/index.ts'
import { isRequired, reportOf } from '../../../support/required.ts'

/*
 * The conformance suite skips a limit that an engine reports as not in force. Where tests of the engine are required, all
 * limits must be in force; otherwise a machine without limits would pass.
 */
// An ordinary user may have no control group.
const isRoot = process.getuid?.() === 0

test.skipIf(!isRoot || !isRequired('local'))(
  'the engine local, where it is required, holds scripts to every limit',
  async () => {
    const { report } = await reportOf(localEngine())
    expect(report.limitsEnforced.toSorted()).toEqual(['cpu', 'disk', 'memory', 'output', 'pids', 'wall'])
  },
)
