import { afterAll, beforeAll, describe } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { sharedCache } from '../../support/engines/pyodide/shared-cache.ts'
import { hostFileTests } from './host-files.ts'
import { onLocal } from './on-engine.ts'

await onLocal((at) => hostFileTests(at, 300))

describe('on the pyodide engine', () => {
  const cache = sharedCache()
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'pyodide', pyodide: { cacheDir: cache.path }, poolSize: 1, maxOverflow: 1 })
  }, 60_000)
  afterAll(async () => {
    await sg.close()
    cache[Symbol.dispose]()
  })
  hostFileTests(
    {
      get sg() {
        return sg
      },
    },
    100,
  )
})
