import { afterAll, describe, it } from 'vitest'
import { pyodideEngine } from '../../../src/engines/pyodide/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { sharedCache } from '../../support/engines/pyodide/shared-cache.ts'
import { conformanceOf } from '../../support/walls.ts'

/* The suite on the engine that needs only Node; docs/limitations/pyodide.md lists the skipped cases. */
const cache = sharedCache()
const cacheDir = cache.path
afterAll(() => cache[Symbol.dispose]())

engineConformance({
  name: 'pyodide',
  ...conformanceOf('pyodide'),
  makeEngine: () => pyodideEngine({ cacheDir, bubblewrap: false }),
  describe,
  it,
})
