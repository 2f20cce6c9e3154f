import { afterAll, beforeAll } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/index.ts'
import { describeHostileDisplays } from '../../support/hostile-displays.ts'
import { describeHostileCells } from '../../support/hostile-sessions.ts'

let sg: Sandglass
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
})
afterAll(() => sg?.close())

describeHostileCells(() => sg)
describeHostileDisplays(() => sg)
