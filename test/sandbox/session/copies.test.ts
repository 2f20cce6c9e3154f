import { afterAll, beforeAll } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'
import { describeCopies } from '../../support/session-copy-rules.ts'

let sg: Sandglass
let workspace: Workspace
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
  workspace = await sg.workspace()
})
afterAll(() => sg?.close())

describeCopies(() => workspace)
