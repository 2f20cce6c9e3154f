import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { pyodideEngine } from '../../src/engines/pyodide/index.ts'
import { engineConformance } from '../../src/testing/index.ts'
import { requireBox } from '../engines/pyodide/bed.ts'

/* The same suite on the engine that needs nothing but Node; what it leaves out is on docs/limitations/pyodide.md. */
const cacheDir = mkdtempSync(join(tmpdir(), 'sandglass-pyodide-'))
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }))

engineConformance({
  name: 'pyodide',
  makeEngine: () => pyodideEngine({ cacheDir, bubblewrap: false }),
  describe,
  it,
})

const { skip } = await requireBox()
if (!skip) {
  engineConformance({ name: 'pyodide in a box', makeEngine: () => pyodideEngine({ cacheDir }), describe, it })
}
