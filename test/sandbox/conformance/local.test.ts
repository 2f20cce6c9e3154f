import { rmSync } from 'node:fs'
import { afterAll, describe, it } from 'vitest'
import { listResources, localEngine } from '../../../src/engines/local/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { openDirectory } from '../../support/engines/local/state-dir.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { conformanceOf } from '../../support/walls.ts'

/* The whole suite. requirements.ts lists what each case proves; support/walls.ts selects the cases for each engine. */
const stateDir = openDirectory()
afterAll(() => rmSync(stateDir, { recursive: true, force: true }))

engineConformance({
  name: 'local',
  ...conformanceOf('local'),
  makeEngine: () => localEngine({ stateDir }),
  describe,
  it,
  unavailable: async () => ((await requireLocalEngine()).skip ? 'the local engine is not usable here' : undefined),
  orphans: async () => (await listResources(stateDir)).filter((resource) => resource.owner !== 'unknown'),
})
