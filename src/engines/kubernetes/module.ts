import type { EngineModule, Resource } from '../../sandbox/index.ts'
import { connect } from './cluster.ts'
import { kubernetesEngine } from './engine.ts'
import type { KubernetesEngineOptions } from './options.ts'
import { listPods, type PodResource, removeOrphans } from './pods.ts'

/** The engine `kubernetes` for the table of engines. */
export const kubernetesModule: EngineModule<KubernetesEngineOptions> = {
  makeEngine: kubernetesEngine,
  reportLines: (probes) => [
    ['python', `${String(probes['python_version'])} (${String(probes['image'])})`],
    ['cluster', `${String(probes['server'])} (context ${String(probes['context'])})`],
    ['namespace', String(probes['namespace'])],
    ['kernel', String(probes['kernel'])],
  ],
  listResources: async (options = {}) => (await listPods(await connect(options))).map(toResource),
  pruneOrphans: async (options = {}) => (await removeOrphans(await connect(options))).map(toResource),
}

function toResource({ name, owner }: PodResource): Resource {
  return { kind: 'pod', id: name, sandbox: name, owner: owner === 'dead' ? 'gone' : owner, uid: null }
}
