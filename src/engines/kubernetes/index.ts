export { kubernetesEngine } from './engine.ts'
export { kubernetesModule } from './module.ts'
export type { KubernetesEngineOptions } from './options.ts'
