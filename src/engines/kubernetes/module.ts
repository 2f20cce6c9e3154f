import type { EngineModule, Resource } from '../../sandbox/index.ts'
import type { OwnerState } from '../../support/index.ts'
import { connect } from './cluster.ts'
import { kubernetesEngine } from './engine.ts'
import type { KubernetesEngineOptions } from './options.ts'
import { type ClusterResources, listResources, removeOrphans } from './pods.ts'

/** The engine `kubernetes` for the table of engines. */
export const kubernetesModule: EngineModule<KubernetesEngineOptions> = {
  makeEngine: kubernetesEngine,
  reportLines: (probes) => [
    ['python', `${String(probes['python_version'])} (${String(probes['image'])})`],
    [
      'cluster',
      `${String(probes['server'])} (context ${String(probes['context'])}), ` +
        `Kubernetes ${String(probes['server_version'] ?? 'of unknown version')}`,
    ],
    ['namespace', String(probes['namespace'])],
    ['kernel', String(probes['kernel'])],
    [
      'runtime',
      probes['runtime_class'] === null ? "the cluster's own" : `RuntimeClass ${String(probes['runtime_class'])}`,
    ],
    ['processes', `counted by ${String(probes['pids_counted_by'])}`],
    ['users', `${probes['user_namespace'] === true ? 'a' : 'no'} user namespace (option kubernetes.hostUsers)`],
  ],
  listResources: async (options = {}) => toResources(await listResources(await connect(options))),
  pruneOrphans: async (options = {}) => toResources(await removeOrphans(await connect(options))),
}

function toResources({ pods, leases }: ClusterResources): readonly Resource[] {
  return [
    ...pods.map(({ name, owner }) => ({ kind: 'pod', id: name, sandbox: name, owner: wordOf(owner), uid: null })),
    ...leases.map(({ name, owner }) => ({ kind: 'lease', id: name, sandbox: null, owner: wordOf(owner), uid: null })),
  ]
}

function wordOf(owner: OwnerState): Resource['owner'] {
  return owner === 'dead' ? 'gone' : owner
}
