import { describe, expect, test } from 'vitest'
import { requireDockerEngine, requireGvisor } from '../../support/docker-engine.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { importOn } from '../../support/environments/on-engine.ts'
import { skipFor } from '../../support/required.ts'

const docker = await requireDockerEngine()
const gvisor = await requireGvisor()
if (noUv !== undefined) skipFor('uv', noUv)

describe('packages on demand in containers', () => {
  test.skipIf(docker.skip || noUv !== undefined)('docker imports declared packages', async () => {
    const options = { engine: 'docker', docker: { image: docker.image } } as const
    await expect(importOn(options)).resolves.toBeUndefined()
  })

  test.skipIf(gvisor.skip || noUv !== undefined)('gVisor imports declared packages', async () => {
    const options = { engine: 'docker', docker: { image: gvisor.image, runtime: 'runsc' } } as const
    await expect(importOn(options)).resolves.toBeUndefined()
  })
})
