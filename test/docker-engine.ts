import { dockerEngine, type DockerEngineOptions } from '../src/engines/docker/index.ts'
import { reportOf, skipFor } from './required.ts'

/** Whether and with what containers can be tested on this machine. */
export interface TestedDocker {
  /** `describe.skipIf(skip)`. */
  readonly skip: boolean
  /** The image that the engine found; empty when skipped. */
  readonly image: string
}

/**
 * Asks the daemon at DOCKER_HOST, or at the default socket, for a container with Python. Where there is none it prints the
 * reason; where SANDGLASS_TEST_REQUIRE names `docker`, it throws instead. It probes, so ask once per file.
 */
export function requireDockerEngine(options: DockerEngineOptions = {}): Promise<TestedDocker> {
  return tested('docker', options)
}

/** The same for a daemon with gVisor registered as the runtime `runsc`, and `gvisor` in SANDGLASS_TEST_REQUIRE. */
export function requireGvisor(options: DockerEngineOptions = {}): Promise<TestedDocker> {
  return tested('gvisor', { ...options, runtime: 'runsc' })
}

async function tested(name: 'docker' | 'gvisor', options: DockerEngineOptions): Promise<TestedDocker> {
  const { report, reason } = await reportOf(dockerEngine(options))
  const weak =
    name === 'gvisor' && report.level !== 'gvisor' ? `the runtime runsc gives level ${report.level}` : undefined
  const trouble = reason ?? weak
  if (trouble === undefined) return { skip: false, image: String(report.probes['image']) }
  skipFor(name, trouble)
  return { skip: true, image: '' }
}
