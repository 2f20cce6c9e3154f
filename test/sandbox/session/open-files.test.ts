import { afterAll, beforeAll } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'
import { describeOpenFiles } from '../../support/session-file-rules.ts'

let sg: Sandglass
let workspace: Workspace
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
  workspace = await sg.workspace()
})
afterAll(() => sg?.close())

describeOpenFiles(() => workspace)
