import { rmSync } from 'node:fs'
import { afterAll, describe, it } from 'vitest'
import { listRemnants, localEngine } from '../../src/engines/local/index.ts'
import { engineConformance } from '../../src/testing/index.ts'
import { openDirectory } from '../engines/local/state-dir.ts'
import { requireLocalEngine } from '../local-engine.ts'

/* The suite shows HA-01 to HA-13 and PO-02 inside real sandboxes: HA-01, HA-02, HA-03, HA-04, HA-05, HA-06, HA-07,
 * HA-08, HA-09, HA-10, HA-11, HA-12, HA-13; the titles name them. */
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
