import type { ContainerRemnant } from './container-remnant.ts'
import { connect } from './daemon.ts'
import { listContainers, removeLeftovers } from './leftovers.ts'
import type { DockerEngineOptions } from './options.ts'

/**
 * Every container of this product on a daemon, whoever made it.
 * @throws SandglassError when the daemon cannot be asked.
 */
export async function listDockerRemnants(options: DockerEngineOptions = {}): Promise<ContainerRemnant[]> {
  return listContainers(await connect(options))
}

/**
 * Removes the containers that nobody can need any more; gives back which.
 * @throws SandglassError when the daemon cannot be asked.
 */
export async function pruneDockerRemnants(options: DockerEngineOptions = {}): Promise<ContainerRemnant[]> {
  return removeLeftovers(await connect(options))
}
