import { afterAll, describe, it } from 'vitest'
import { pyodideEngine } from '../../../src/engines/pyodide/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { sharedCache } from '../../support/engines/pyodide/shared-cache.ts'
import { conformanceOf } from '../../support/walls.ts'
import { requireBubblewrap } from '../engines/pyodide/fixture.ts'

/* The suite on Pyodide in bubblewrap; without it: pyodide.test.ts. */
const cache = sharedCache()
const cacheDir = cache.path
afterAll(() => cache[Symbol.dispose]())

const { skip } = await requireBubblewrap()
engineConformance({
  name: 'pyodide in a box',
  ...conformanceOf('pyodide-box'),
  makeEngine: () => pyodideEngine({ cacheDir }),
  describe,
  it,
  unavailable: () => Promise.resolve(skip ? 'bubblewrap is not usable here' : undefined),
})
