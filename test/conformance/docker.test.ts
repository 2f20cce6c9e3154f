import { describe, it } from 'vitest'
import { dockerEngine } from '../../src/engines/docker/index.ts'
import { engineConformance } from '../../src/testing/index.ts'
import { requireDockerEngine } from '../docker-engine.ts'
import { containers } from '../support/containers.ts'

/* PO-03: every test drives a ManagedContainer over its attached standard input and output. HA-11 and the other
 * requirements of the harness hold in it as on the local engine; the titles name them. */
const { skip, image } = await requireDockerEngine()

engineConformance({
  name: 'docker',
  makeEngine: () => dockerEngine({ image }),
  describe,
  it,
  unavailable: () => Promise.resolve(skip ? 'the docker engine is not usable here' : undefined),
  leftovers: () => Promise.resolve(containers(undefined).filter(({ owner }) => owner === process.pid)),
})
