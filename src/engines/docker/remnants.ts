import type { ContainerRemnant } from './container-remnant.ts'
import { checkOptions } from './check-options.ts'
import { connect } from './daemon.ts'
import { listContainers, removeLeftovers } from './leftovers.ts'
import type { DockerEngineOptions } from './options.ts'

/**
 * Every container of this product on a daemon, whoever made it.
 * @throws TypeError naming an option that is wrong, SandglassError when the daemon cannot be asked.
 */
export async function listDockerRemnants(options: DockerEngineOptions = {}): Promise<ContainerRemnant[]> {
  checkOptions(options)
  return listContainers(await connect(options))
}

/**
 * Removes the containers that nobody can need any more; gives back which.
 * @throws TypeError naming an option that is wrong, SandglassError when the daemon cannot be asked.
 */
export async function pruneDockerRemnants(options: DockerEngineOptions = {}): Promise<ContainerRemnant[]> {
  checkOptions(options)
  return removeLeftovers(await connect(options))
}
