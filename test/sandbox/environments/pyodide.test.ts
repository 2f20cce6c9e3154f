import { describe, expect, test } from 'vitest'
import { noUv } from '../../support/environments/fixture.ts'
import { importOn } from '../../support/environments/on-engine.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(noUv !== undefined)('packages on demand in WebAssembly', () => {
  test('pyodide imports what was declared', async () => {
    await expect(importOn({ engine: 'pyodide' })).resolves.toBeUndefined()
  })
})
