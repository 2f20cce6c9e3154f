import { type PrivateDaemon, GVISOR, requirePrivateDaemon, startDaemon } from './docker-daemon.ts'
import { findGvisor, requireDockerEngine, requireGvisor } from './docker-engine.ts'

/** A daemon with gVisor. */
export interface GvisorDaemon extends AsyncDisposable {
  /** `describe.skipIf(skip)`. */
  readonly skip: boolean
  /** The address of the daemon; empty when skipped. */
  readonly host: string
  readonly image: string
}

/** gVisor, gVisor under a neutral name, and another runtime under the name of gVisor. */
const RUNTIMES = { ...GVISOR, nameless: GVISOR.runsc, 'runsc-by-name': { path: 'runc' } } as const

/** The default daemon if it has gVisor as `runsc`, else one of {@link startGvisor}. */
export async function anyGvisor(): Promise<GvisorDaemon> {
  const image = await findGvisor()
  if (image === undefined) return startGvisor()
  const host = process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock'
  return { skip: false, host, image, [Symbol.asyncDispose]: async () => {} }
}

/**
 * Starts a daemon that has gVisor under several names, with the image that the default daemon has. The reason is printed
 * when that cannot be done.
 */
export async function startGvisor(): Promise<GvisorDaemon> {
  const nothing: GvisorDaemon = { skip: true, host: '', image: '', [Symbol.asyncDispose]: async () => {} }
  if (requirePrivateDaemon({ gvisor: true }).skip) return nothing
  const { skip, image } = await requireDockerEngine()
  if (skip) return nothing
  const daemon: PrivateDaemon = await startDaemon({ runtimes: RUNTIMES })
  try {
    await daemon.load(image)
    const found = await requireGvisor({ host: daemon.host, image })
    return { ...found, host: daemon.host, [Symbol.asyncDispose]: () => daemon.close() }
  } catch (error) {
    await daemon.close()
    throw error
  }
}
