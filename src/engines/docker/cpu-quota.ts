import type { Daemon } from './daemon.ts'

/**
 * Whether the kernel counts the periods of a CPU quota on a container: it does so only where one is in force. False where
 * the daemon does not tell.
 */
export async function hasCpuQuota(daemon: Daemon, id: string): Promise<boolean> {
  const options = { stream: false, 'one-shot': true } as const
  try {
    const stats = await daemon.call('tell what a container uses', daemon.docker.getContainer(id).stats(options))
    return stats.cpu_stats.throttling_data.periods > 0
  } catch {
    return false
  }
}
