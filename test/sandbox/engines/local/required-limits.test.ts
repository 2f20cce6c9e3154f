import { expect, test } from 'vitest'
import { localEngine } from '../../../../src/engines/local/index.ts'
import { isRequired, reportOf } from '../../../support/required.ts'

/*
 * The conformance suite leaves a limit out that an engine reports as not in force. Where the engine must be tested, all of
 * them must be there, or a machine that holds scripts to nothing would pass.
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
