import { describe, expect, test } from 'vitest'
import { allEnded, kindsLeft, withSandbox } from '../../sandbox/soak/one-sandbox.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'

const { skip } = await requireDockerEngine()

describe.skipIf(skip)('the search for leaks of the engine docker', () => {
  test('finds a container that runs after its sandbox ended, until it is removed', async () => {
    const { at, end } = await withSandbox('docker')
    // A container that another test is making has a root before the daemon lists it.
    expect(await kindsLeft(at)).toEqual([])
    const kinds = Object.keys(await at.remains(allEnded(at)))
    expect(kinds).toEqual(expect.arrayContaining(['containers', 'processes', 'control groups']))
    await end()
    expect(await kindsLeft(at)).toEqual([])
  })
})
