import { expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { isRequired, reportOf } from '../../../support/required.ts'

/*
 * The conformance suite leaves a limit out that an engine reports as not in force. Where the engine must be tested, all of
 * them must be there, or a machine that holds scripts to nothing would pass.
 */
test.skipIf(!isRequired('docker'))(
  'the engine docker, where it is required, holds scripts to every limit',
  async () => {
    const { report } = await reportOf(dockerEngine())
    expect(report.limitsEnforced.toSorted()).toEqual(['cpu', 'disk', 'memory', 'output', 'pids', 'wall'])
  },
)
