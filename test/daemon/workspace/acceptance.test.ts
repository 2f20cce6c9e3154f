import { describe } from 'vitest'
import { workspaceCases } from '../../../campaigns/adversarial/suites/workspace.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('on the docker engine', () => {
  workspaceCases({ engine: 'docker', docker: { image } })
})
