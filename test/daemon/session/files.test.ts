import { afterAll, beforeAll, describe } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { describeWhatBranchesLack } from '../../support/session-branch-rules.ts'
import { describeCopies } from '../../support/session-copy-rules.ts'
import { describeOpenFiles } from '../../support/session-file-rules.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('in sessions of the engine docker', () => {
  let sg: Sandglass
  let workspace: Workspace
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 0 })
    workspace = await sg.workspace()
  }, 60_000)
  afterAll(() => sg?.close())

  describeOpenFiles(() => workspace)
  describeCopies(() => workspace)
  // Last, because its branches go on, and a rollback beside them removes nothing from files.
  describeWhatBranchesLack(() => workspace)
})
