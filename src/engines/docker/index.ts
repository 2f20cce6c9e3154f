export { type DockerEngine, dockerEngine, type DockerSandbox } from './engine.ts'
export { ManagedContainer } from './managed-container.ts'
export { dockerModule } from './module.ts'
export type { DockerEngineOptions, DockerTls, HostResource } from './options.ts'
