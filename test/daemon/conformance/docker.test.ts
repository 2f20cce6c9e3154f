import { describe, it } from 'vitest'
import { dockerEngine } from '../../../src/engines/docker/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { containers } from '../../support/containers.ts'
import { conformanceOf } from '../../support/walls.ts'

/* PO-03: every test drives a ManagedContainer over its attached standard input and output. HA-11 is tested as on the
 * local engine. */
const { skip, image } = await requireDockerEngine()

engineConformance({
  name: 'docker',
  ...conformanceOf('docker'),
  makeEngine: () => dockerEngine({ image }),
  describe,
  it,
  unavailable: () => Promise.resolve(skip ? 'the docker engine is not usable here' : undefined),
  orphans: () => Promise.resolve(containers(undefined).filter(({ owner }) => owner === process.pid)),
})
