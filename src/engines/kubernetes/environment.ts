import { Archives } from './archive.ts'
import { connect, type Cluster } from './cluster.ts'
import { Housekeeping } from './housekeeping.ts'
import type { NetworkFinding } from './network.ts'
import type { KubernetesEngineOptions } from './options.ts'
import { findOwnPod, type OwnerMarks, ownerMarks } from './owner.ts'
import { type PodPrograms, readPrograms } from './programs.ts'

/** The cluster and the settings that the engine uses, found at its first use. */
export interface EngineEnvironment {
  readonly cluster: Cluster
  readonly programs: PodPrograms
  readonly marks: OwnerMarks
  readonly housekeeping: Housekeeping
  readonly archives: Archives
  /** The first one served; a pod that finds it open is made again with the next one. */
  readonly rootOnlyDirs: string[]
  /** True if pods are taken to run on gVisor. A guess by the name of the RuntimeClass, until the first pod has reported. */
  gvisor: boolean
  /** The proof that sandboxes reach nothing, once a report has one. Every later sandbox is checked against it. */
  network?: NetworkFinding
}

/** Directories that only root may enter: of most images, and of those on Debian whose `/root` is open. */
const ROOT_ONLY_DIRS = ['/root', '/var/cache/ldconfig']

/**
 * Reads the configuration, and begins to remove the pods of dead owners.
 * @throws SandglassError `kubernetes_client_missing`, `kubernetes_config`.
 */
export async function prepare(options: KubernetesEngineOptions): Promise<EngineEnvironment> {
  const cluster = await connect(options)
  const programs = readPrograms()
  const marks = ownerMarks(await findOwnPod(cluster))
  const housekeeping = new Housekeeping(cluster, marks)
  housekeeping.begin()
  const gvisor = /gvisor|runsc/.test(options.runtimeClassName ?? '')
  const archives = new Archives()
  return { cluster, programs, marks, housekeeping, archives, rootOnlyDirs: directoriesOf(options), gvisor }
}

function directoriesOf({ rootOnlyDir }: KubernetesEngineOptions): string[] {
  return rootOnlyDir === undefined ? [...ROOT_ONLY_DIRS] : [rootOnlyDir]
}
