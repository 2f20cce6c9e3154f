/** A host with one sandbox on a cluster, for a test that kills it. Prints the name of the pod. */
import { kubernetesEngine, type KubernetesEngineOptions } from '../../src/engines/kubernetes/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'

const engine = kubernetesEngine(JSON.parse(process.argv[2] ?? '{}') as KubernetesEngineOptions)
const sandbox = await engine.create({ limits: sandboxLimits(resolveLimits()) })
console.log(sandbox.id)
setInterval(() => {}, 1000)
