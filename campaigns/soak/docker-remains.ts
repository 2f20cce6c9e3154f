import { listResources } from '../../src/engines/docker/containers.ts'
import { containers, docker, leftOf, rootsOf } from '../../test/support/containers.ts'
import { allProcesses, commandLineOf, descendantsOf, processOf } from '../../test/support/processes.ts'
import type { Sandbox } from '../../src/index.ts'
import { describeProcess, filesLeft, mountsOf, type Place, withoutEmpty, type Remains, textOf } from './remains.ts'
import type { WatchedEngine } from './watched-engine.ts'

/** The resources that sandboxes of the engine `docker` left on the daemon at DOCKER_HOST, and on this machine if the daemon runs here. */
export async function dockerRemains(
  place: Place,
  engine: Pick<WatchedEngine, 'living' | 'ended'>,
  host: number = process.pid,
): Promise<Remains> {
  const ended = [...engine.ended.values()].flatMap((sandbox) => containerId(sandbox) ?? [])
  const ours = (await listResources()).filter(({ pid }) => pid === host)
  const { 'control groups': groups, mounts } = leftOf(ended)
  return withoutEmpty({
    containers: ours.filter(({ name }) => !engine.living.has(name)).map(({ name, state }) => `${name} (${state})`),
    processes: [
      ...processesNaming(ended).map((pid) => `${pid} ${describeProcess(pid)}`),
      ...descendantsOf(host)
        .filter((pid) => processOf(pid) !== undefined)
        .map((pid) => `${pid} ${describeProcess(pid)}`),
    ],
    'control groups': groups,
    mounts: [...mounts, ...rootsLeft()],
    files: filesLeft(place, engine.living.keys()),
  })
}

/** The Docker id of the container of a sandbox; undefined for another engine. */
export function containerId(sandbox: Sandbox | undefined): string | undefined {
  if (sandbox === undefined || !('container' in sandbox)) return undefined
  return (sandbox as Sandbox & { readonly container: { readonly id: string } }).container.id
}

/** Processes in these containers, found by control group, and their shims, found by command line. */
export function processesNaming(ids: readonly string[]): number[] {
  const known = new Set(ids)
  const names = (text: string): boolean => (text.match(/[\da-f]{64}/g) ?? []).some((id) => known.has(id))
  return allProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => names(textOf(`/proc/${pid}/cgroup`)) || names(commandLineOf(pid)))
}

/** Mounted container roots whose container is unknown to the daemon. */
function rootsLeft(): string[] {
  const dataRoot = docker(undefined, 'info', '--format', '{{.DockerRootDir}}').trim()
  const roots = new Set(rootsOf(undefined, containers(undefined)).map(([, path]) => path))
  return mountsOf([`${dataRoot}/overlay2/`])
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.endsWith('/merged') && !roots.has(path))
}
