import { describe } from 'vitest'
import { workspaceCases } from '../../../campaigns/adversarial/suites/workspace.ts'
import { createSandglass, dockerEngine } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('on the docker engine', () => {
  workspaceCases(() => createSandglass({ engine: dockerEngine({ image }), poolSize: 0 }))
})
