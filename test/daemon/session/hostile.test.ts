import { afterAll, beforeAll, describe } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { describeHostileDisplays } from '../../support/hostile-displays.ts'
import { describeHostileCells } from '../../support/hostile-sessions.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('in a session of the engine docker', () => {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 0 })
  })
  afterAll(() => sg?.close())

  describeHostileCells(() => sg)
  describeHostileDisplays(() => sg)
})
