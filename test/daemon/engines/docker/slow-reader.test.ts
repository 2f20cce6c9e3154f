import { expect, test } from 'vitest'
import { createSandglass } from '../../../../src/index.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { readSlowly } from '../../../support/slow-reader.ts'

const { skip, image } = await requireDockerEngine()

test.skipIf(skip)('a caller that reads slowly gets all of a run whose sandbox ends with it', async () => {
  await using sandglass = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 1 })
  await expect(readSlowly(sandglass)).resolves.toBeUndefined()
})
