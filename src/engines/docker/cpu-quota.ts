import type Docker from 'dockerode'
import type { Daemon } from './daemon.ts'

/**
 * True if a CPU quota is in force on a container: only then the kernel counts its periods. Undefined if the daemon did
 * not answer.
 */
export async function hasCpuQuota(daemon: Daemon, id: string): Promise<boolean | undefined> {
  const ask = (abortSignal: AbortSignal): Promise<Docker.ContainerStats> => {
    const options = { stream: false, 'one-shot': true, abortSignal } as const
    return daemon.docker.getContainer(id).stats(options)
  }
  try {
    const stats: Answer = await daemon.call('report the resource usage of a container', ask)
    return (stats.cpu_stats?.throttling_data?.periods ?? 0) > 0
  } catch {
    return undefined
  }
}

/** Not every runtime reports all fields. */
interface Answer {
  readonly cpu_stats?: { readonly throttling_data?: { readonly periods?: number } }
}
