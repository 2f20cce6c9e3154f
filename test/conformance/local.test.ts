import { rmSync } from 'node:fs'
import { afterAll, describe, it } from 'vitest'
import { listRemnants, localEngine } from '../../src/engines/local/index.ts'
import { engineConformance } from '../../src/testing/index.ts'
import { openDirectory } from '../engines/local/state-dir.ts'
import { requireLocalEngine } from '../local-engine.ts'

const stateDir = openDirectory()
afterAll(() => rmSync(stateDir, { recursive: true, force: true }))

engineConformance({
  name: 'local',
  makeEngine: () => localEngine({ stateDir }),
  describe,
  it,
  unavailable: async () => ((await requireLocalEngine()).skip ? 'the local engine is not usable here' : undefined),
  leftovers: async () => (await listRemnants(stateDir)).filter((remnant) => remnant.owner !== 'unknown'),
})
