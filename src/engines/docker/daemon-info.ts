import { SandglassError } from '../../errors/index.ts'
import type { Daemon } from './daemon.ts'

/**
 * Fetches the daemon's description of itself.
 * @throws SandglassError `docker_unreachable`, also if the server is not a Docker daemon.
 */
export async function fetchDaemonInfo(daemon: Daemon, signal?: AbortSignal): Promise<Record<string, unknown>> {
  // The client's types lack the signal here.
  type Info = (options: { abortSignal: AbortSignal }) => Promise<unknown>
  const ask: Info = (options) => (daemon.docker as unknown as { info: Info }).info(options)
  const makeStrangerError = (cause?: unknown): SandglassError =>
    new SandglassError(
      'docker_unreachable',
      `the server at ${daemon.address} is not a Docker daemon${cause instanceof Error ? `: ${cause.message}` : ''}; set ` +
        'DOCKER_HOST or the option host to its address',
      cause === undefined ? {} : { cause },
    )
  const found = await daemon
    .call('describe itself', (abortSignal) => ask({ abortSignal }), signal)
    .catch((error: unknown) => {
      throw error instanceof SandglassError && error.code === 'sandbox_setup_failed'
        ? makeStrangerError(error.cause)
        : error
    })
  if (typeof found !== 'object' || found === null || !('ServerVersion' in found)) throw makeStrangerError()
  return { ...found }
}

/** The time of the daemon's clock in milliseconds; NaN when it reports none. */
export function timeOf({ SystemTime }: Readonly<Record<string, unknown>>): number {
  return typeof SystemTime === 'string' ? Date.parse(SystemTime) : Number.NaN
}

/** The kernel of the daemon's machine; empty when it reports none. */
export function kernelOf({ KernelVersion }: Readonly<Record<string, unknown>>): string {
  return typeof KernelVersion === 'string' && KernelVersion !== '<unknown>' ? KernelVersion : ''
}

/**
 * Fetches the kernel that a daemon runs on now: its machine may have been restarted. Empty when it reports none. Never
 * rejects.
 */
export async function fetchKernel(daemon: Daemon): Promise<string> {
  // The client's types lack the signal here, too.
  type Version = (options: { abortSignal: AbortSignal }) => Promise<Readonly<Record<string, unknown>>>
  const docker = daemon.docker as unknown as { version: Version }
  return daemon
    .call('report its version', (abortSignal) => docker.version({ abortSignal }))
    .then(kernelOf)
    .catch(() => '')
}
