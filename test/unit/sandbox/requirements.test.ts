import { expect, test } from 'vitest'
import { assertRequirements, reportOfProbe, type Requirement } from '../../../src/sandbox/index.ts'

test.each<Requirement>(['network', 'memory', 'language-only'])(
  'an engine that cannot be used, now or for a moment, does not meet %s',
  async (item) => {
    const report = await reportOfProbe({
      engine: 'other',
      create: () => Promise.reject(new Error('the quota of pods is used up')),
      found: () => Promise.reject(new Error('no sandbox was made')),
      remedies: {},
    })
    expect(() => assertRequirements(report, [item])).toThrow(
      `the engine other does not provide ${item} on this machine (it cannot be used): the quota of pods is used up`,
    )
  },
)
