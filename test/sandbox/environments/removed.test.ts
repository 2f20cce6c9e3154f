import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { localEngine } from '../../../src/engines/local/index.ts'
import { createSandglass } from '../../../src/index.ts'
import type { SandboxEngine } from '../../../src/sandbox/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { demo, helper, IMPORT, newCache, newIndex } from '../../support/environments/indexed.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(skip || noUv !== undefined)('an environment that is removed while a sandbox starts', () => {
  test.each(['run', 'solve', 'workspace'] as const)('is installed again for that %s', async (call) => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    const local = localEngine()
    let isToBeRemoved = true
    const engine: SandboxEngine = {
      name: local.name,
      report: () => local.report(),
      close: () => local.close(),
      create(spec, given) {
        if (isToBeRemoved && spec.packages !== undefined && given?.background !== true) {
          isToBeRemoved = false
          renameSync(join(cacheDir, 'environments'), join(cacheDir, 'removed'))
          rmSync(join(cacheDir, 'removed'), { recursive: true })
        }
        return local.create(spec, given)
      },
    }
    const environments = { cacheDir, index: index.address }
    await using sandglass = await createSandglass({ engine, poolSize: 1, environments })
    const dependencies = ['demo']
    const result = await {
      run: () => sandglass.run(IMPORT, { dependencies }),
      solve: () => sandglass.solve('Import.', { dependencies, model: scriptedModel(IMPORT) }),
      workspace: async () => {
        await using workspace = await sandglass.workspace({ dependencies })
        return await workspace.run(IMPORT)
      },
    }[call]()
    expect(result).toMatchObject({ success: true, finalData: ['1.0', '1.0'] })
    expect(isToBeRemoved).toBe(false)
  })
})
