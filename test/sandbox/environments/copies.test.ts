import { expect, test } from 'vitest'
import { localEngine } from '../../../src/engines/local/index.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { demo, helper, newCache, newIndex, open } from '../../support/environments/indexed.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)

test.skipIf(skip || noUv !== undefined).each([
  [true, 'are replaced once an environment has its byte code'],
  [false, 'stay where they see it'],
])('sandboxes of an engine that copies packages (%s) %s', async (copiesPackages) => {
  const engine = { ...localEngine(), copiesPackages }
  try {
    await using sandglass = await open(await newIndex(demo, helper), newCache(), { engine, dependencies: ['demo'] })
    const run = async (): Promise<string | undefined> => (await sandglass.run('import demo')).sandbox?.id
    const first = await run()
    await sandglass.prepare(['demo']) // waits for the byte code
    await run()
    expect((await run()) === first).toBe(!copiesPackages)
  } finally {
    await engine.close()
  }
})
