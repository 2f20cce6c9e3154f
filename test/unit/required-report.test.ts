import { expect, test } from 'vitest'
import { createSandglass } from '../../src/index.ts'
import { reportOfProbe, type SandboxEngine, type SandboxReport } from '../../src/sandbox/index.ts'
import { replayChannel } from '../../src/testing/index.ts'

const FAILED = await reportOfProbe({
  engine: 'other',
  create: () => Promise.reject(new Error('the quota of pods is used up')),
  found: () => Promise.reject(new Error('no sandbox was made')),
  remedies: {},
})
const OPEN: SandboxReport = { ...FAILED, usable: true, network: 'open', reasons: [] }

/** An engine that works, and gives these reports one after the other. */
function engineWith(...reports: readonly SandboxReport[]): SandboxEngine {
  const left = [...reports]
  return {
    name: 'other',
    create: () => Promise.resolve(replayChannel([])),
    report: () => Promise.resolve(left.shift() ?? FAILED),
    close: () => Promise.resolve(),
  }
}

test.each([
  ['and is open when it is asked again', engineWith(FAILED, OPEN), 'the engine other does not provide network'],
  [
    'and fails again',
    engineWith(FAILED),
    'the engine other starts sandboxes, but cannot show that they have network: the quota of pods is used up',
  ],
])('an engine whose report fails is not taken for one without a network: it fails, %s', async (_, engine, message) => {
  await expect(createSandglass({ engine, require: ['network'], poolSize: 0 })).rejects.toMatchObject({
    code: 'requirement_unmet',
    message: expect.stringContaining(message) as string,
  })
})
