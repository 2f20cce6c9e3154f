import type Docker from 'dockerode'
import type { Daemon } from './daemon.ts'

/**
 * Whether the kernel counts the periods of a CPU quota on a container: it does so only where one is in force. Undefined
 * where the daemon gave no answer.
 */
export async function hasCpuQuota(daemon: Daemon, id: string): Promise<boolean | undefined> {
  const ask = (abortSignal: AbortSignal): Promise<Docker.ContainerStats> => {
    const options = { stream: false, 'one-shot': true, abortSignal } as const
    return daemon.docker.getContainer(id).stats(options)
  }
  try {
    const stats: Answer = await daemon.call('tell what a container uses', ask)
    return (stats.cpu_stats?.throttling_data?.periods ?? 0) > 0
  } catch {
    return undefined
  }
}

/** Not every runtime tells all of it. */
interface Answer {
  readonly cpu_stats?: { readonly throttling_data?: { readonly periods?: number } }
}
