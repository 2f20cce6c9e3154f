import { openEngine } from './kubernetes.ts'
import type { TestedEngine } from './tested.ts'

/** Tests of the engine kubernetes, on a one-node cluster on this machine. */
export const KUBERNETES: TestedEngine = {
  name: 'kubernetes',
  // The groups that pods and their runtime decide. The rest is the same harness, broker and host as in containers of Docker.
  groups: ['isolation-and-processes', 'network', 'resource-exhaustion'],
  // These meet the channel over the API server, the environment of the host, and the processes of a pod.
  also: ['CTL-010', 'CTL-028', 'CTL-038', 'PRO-014', 'PRO-020', 'PRO-037', 'SEC-001', 'SEC-012'],
  async ready() {
    // It loads the client of Kubernetes.
    const { requireCluster } = await import('../../../test/support/kubernetes-cluster.ts')
    const { skip, options } = await requireCluster()
    const isElsewhere = (process.env['SANDGLASS_TEST_KUBERNETES_BRIDGE'] ?? '') === ''
    if (!skip && isElsewhere)
      console.warn('skipped: attacks in pods: SANDGLASS_TEST_KUBERNETES_BRIDGE names no bridge of this machine')
    return { skip: skip || isElsewhere, open: () => openEngine(JSON.stringify(options)) }
  },
  faults: new Map(),
  excluded: new Map([
    ['ISO-011', { why: 'a file that other users may not read is not sent to a pod, so there is nothing to refuse' }],
  ]),
}
