import { afterAll, beforeAll, describe } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { makeCacheDir } from '../../support/environments/fixture.ts'
import { lacksIndex } from '../../support/environments/real-index.ts'
import { describeShownPackages } from '../../support/session-package-rules.ts'

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip || lacksIndex)('with packages of the index, on the engine docker', () => {
  const cache = makeCacheDir()
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({
      engine: 'docker',
      docker: { image },
      poolSize: 0,
      dependencies: ['matplotlib', 'pandas'],
      environments: { cacheDir: cache.path },
      limits: { executionTimeoutSec: 60, memoryBytes: 1024 ** 3 },
    })
    // With their byte code, as in later sandboxes.
    await sg.prepare(['matplotlib', 'pandas'])
  }, 240_000)
  afterAll(async () => {
    await sg?.close()
    cache[Symbol.dispose]()
  })

  describeShownPackages(() => sg)
})
