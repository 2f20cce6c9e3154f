import { expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { isRequired, reportOf } from '../../../support/required.ts'

/*
 * The conformance suite skips a limit that an engine reports as not in force. Where tests of the engine are required, all
 * limits must be in force; otherwise a machine without limits would pass.
 */
test.skipIf(!isRequired('docker'))(
  'the engine docker, where it is required, holds scripts to every limit',
  async () => {
    const { report } = await reportOf(dockerEngine())
    expect(report.limitsEnforced.toSorted()).toEqual(['cpu', 'disk', 'memory', 'output', 'pids', 'wall'])
  },
)
