import { describe, it } from 'vitest'
import { kubernetesEngine } from '../../../src/engines/kubernetes/index.ts'
import { engineConformance } from '../../../src/testing/index.ts'
import { findGvisorClass } from '../../support/gvisor-class.ts'
import { podsOf, requireCluster } from '../../support/kubernetes-cluster.ts'
import { isFull } from '../../support/walls.ts'

/* Harness, broker and kernel are those of containers on gVisor, and the channel is that of pods. The first case shows that they fit. */
const { skip, options, admin, config } = await requireCluster()
const runtimeClassName = skip ? undefined : await findGvisorClass(config, options)

engineConformance({
  name: 'kubernetes with gVisor',
  ...(isFull() ? {} : { only: { walls: [], sampleEvery: 1000 } }),
  imageHomes: ['user'], // an image for tests may have a user
  makeEngine: () => kubernetesEngine({ ...options, ...(runtimeClassName === undefined ? {} : { runtimeClassName }) }),
  describe,
  it,
  unavailable: () => Promise.resolve(runtimeClassName === undefined ? 'there is no cluster with gVisor' : undefined),
  orphans: () => (skip ? Promise.resolve([]) : podsOf(admin)),
})
