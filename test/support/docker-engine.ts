import { dockerEngine, type DockerEngineOptions } from '../../src/engines/docker/index.ts'
import { reportOf, skipFor } from './required.ts'
import { oncePerRun } from './run-directory.ts'

/** The Docker engine of the tests, if this machine has one. */
export interface TestedDocker {
  /** `describe.skipIf(skip)`. */
  readonly skip: boolean
  /** The image of the engine; empty when skipped. */
  readonly image: string
}

/**
 * Probes the daemon at DOCKER_HOST, or at the default socket, for a container with Python. Without one it prints the
 * reason; where SANDGLASS_TEST_REQUIRE names `docker`, it throws instead. The global setup probes, the files read what it
 * found; other options are probed by the first file that asks for them.
 */
export function requireDockerEngine(options: DockerEngineOptions = {}): Promise<TestedDocker> {
  return checkDocker('docker', options)
}

/** The image for gVisor at the daemon of {@link requireDockerEngine}; undefined without the runtime `runsc`. */
export async function findGvisor(): Promise<string | undefined> {
  const { problem, image } = await probe('gvisor', { runtime: 'runsc' })
  return problem === null ? image : undefined
}

/** The same for a daemon with gVisor registered as the runtime `runsc`, and `gvisor` in SANDGLASS_TEST_REQUIRE. */
export function requireGvisor(options: DockerEngineOptions = {}): Promise<TestedDocker> {
  return checkDocker('gvisor', { ...options, runtime: 'runsc' })
}

async function checkDocker(name: 'docker' | 'gvisor', options: DockerEngineOptions): Promise<TestedDocker> {
  const { problem, image } = await probe(name, options)
  if (problem === null) return { skip: false, image }
  skipFor(name, problem)
  return { skip: true, image: '' }
}

/** The image of a usable engine, or the reason why it is not usable. */
function probe(
  name: 'docker' | 'gvisor',
  options: DockerEngineOptions,
): Promise<{ readonly problem: string | null; readonly image: string }> {
  return oncePerRun([name, options, process.env['DOCKER_HOST']], async () => {
    const { report, reason } = await reportOf(dockerEngine(options))
    const weak =
      name === 'gvisor' && report.level !== 'gvisor' ? `the runtime runsc gives level ${report.level}` : undefined
    return { problem: reason ?? weak ?? null, image: String(report.probes['image']) }
  })
}
