import { describe, it } from 'vitest'
import { kubernetesEngine } from '../../../src/engines/kubernetes/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { podsOf, requireCluster } from '../../support/kubernetes-cluster.ts'
import { sandboxesAhead } from '../../support/sandboxes-ahead.ts'
import { conformanceOf } from '../../support/walls.ts'

const { skip, options, admin } = await requireCluster()

engineConformance({
  name: 'kubernetes',
  ...conformanceOf('kubernetes'),
  imageHomes: ['user'], // an image for tests may have a user
  makeEngine: () => sandboxesAhead(kubernetesEngine(options)),
  describe,
  it,
  unavailable: () => Promise.resolve(skip ? 'there is no cluster for tests' : undefined),
  orphans: () => podsOf(admin),
})
