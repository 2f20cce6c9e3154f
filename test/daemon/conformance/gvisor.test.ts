import { afterAll, describe, it } from 'vitest'
import { dockerEngine } from '../../../src/engines/docker/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { containers } from '../../support/containers.ts'
import { anyGvisor } from '../../support/gvisor.ts'
import { conformanceOf } from '../../support/walls.ts'

/* PO-03 and HA-11 in containers with gVisor's kernel. docs/limitations/gvisor.md lists the differences. */
const gvisor = await anyGvisor()
const { skip, host, image } = gvisor
afterAll(() => gvisor[Symbol.asyncDispose]())

engineConformance({
  name: 'docker with gVisor',
  ...conformanceOf('gvisor'),
  makeEngine: () => dockerEngine({ host, image, runtime: 'runsc' }),
  describe,
  it,
  unavailable: () => Promise.resolve(skip ? 'gVisor is not usable here' : undefined),
  orphans: () => Promise.resolve(skip ? [] : containers(host).filter(({ owner }) => owner === process.pid)),
})
