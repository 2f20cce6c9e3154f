import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DockerEngineOptions } from '../../../src/engines/docker/index.ts'
import { connect } from '../../../src/engines/docker/daemon.ts'
import { listContainers } from '../../../src/engines/docker/containers.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import {
  type Container,
  containers,
  docker,
  leftOf,
  processesIn,
  rootsOf,
  wordsOf,
} from '../../../test/support/containers.ts'
import { cpuMs } from '../../../test/support/processes.ts'
import { ofHost } from '../../../test/support/resources.ts'
import type { EngineUnderTest } from '../driver/engine.ts'

/** Options for a separate host process, which does not inherit the environment of this one. */
interface State extends DockerEngineOptions {
  readonly image: string
  readonly host: string
}

const DEFAULT_HOST = 'unix:///var/run/docker.sock'

/** The docker engine. Its daemon must run on this machine, because the tests inspect processes. */
export function openEngine(state: string): EngineUnderTest {
  const options = JSON.parse(state) as State
  const { image, host } = options
  /** Known containers by sandbox: a name cannot be looked up after its container is gone. */
  const seen = new Map<string, Container>()
  /** Mount point of the root directory, by container. */
  const roots = new Map<string, string>()
  const containerOf = (sandboxId: string): Container | undefined => {
    const known = seen.get(sandboxId)
    if (known !== undefined) return known
    const found = sandboxId === '' ? undefined : containers(host, sandboxId)[0]
    if (found !== undefined) seen.set(sandboxId, found)
    return found
  }
  const processesOf: EngineUnderTest['processesOf'] = (sandboxId) => {
    const container = containerOf(sandboxId)
    return container === undefined ? [] : processesIn(container.id)
  }
  const ownedBy = (owner: number): string[] =>
    containers(host)
      .filter((container) => container.owner === owner)
      .map(({ name }) => name)

  return {
    name: 'docker',
    module: import.meta.url,
    state,
    get hostPath() {
      return docker(host, 'info', '--format', '{{.DockerRootDir}}').trim()
    },
    packagesInside: '/packages',
    // In a container, only root may write to /dev.
    readOnly: { '/dev': 'EACCES' },
    // Docker's default seccomp profile requires CAP_SYS_NICE for mbind.
    blockedByEngineFilter: ['mbind'],
    open: (given = {}) => createSandglass({ ...given, engine: 'docker', docker: options }),
    processesOf,
    cpuMsOf: (sandboxId) => processesOf(sandboxId).reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    sandboxesOf: ownedBy,
    watchContainers(sandboxId) {
      const lease = containerOf(sandboxId)?.lease
      if (lease === undefined) throw new Error(`sandbox ${sandboxId} has no container`)
      return () =>
        containers(host)
          .filter((container) => container.lease === lease)
          .map(({ name }) => name)
    },
    inspectFromHost(sandboxId) {
      const upper = docker(host, 'inspect', '--format', '{{.GraphDriver.Data.UpperDir}}', sandboxId).trim()
      const words = [['inspect'], ['top'], ['logs', '--details'], ['diff']].map((command) =>
        wordsOf(host, ...command, sandboxId),
      )
      return [...words, wordsOf(host, 'image', 'history', '--no-trunc', image), ...contentsBelow(upper)].join('\n')
    },
    resources(sandboxIds, owner = process.pid) {
      const named = containers(host).filter(({ name }) => sandboxIds.has(name))
      for (const container of named) seen.set(container.name, container)
      for (const [id, path] of rootsOf(host, named)) roots.set(id, path)
      const ids = [...sandboxIds].flatMap((sandboxId) => seen.get(sandboxId)?.id ?? [])
      const marks = ids.flatMap((id) => [id, roots.get(id) ?? id])
      return { ...ofHost(owner), ...leftOf(marks), containers: ownedBy(owner) }
    },
    async resourcesOf(ids) {
      const listed = await listContainers(await connect({ host }))
      return listed
        .filter(({ name }) => ids.has(name))
        .map(({ name, owner }) => ({ kind: 'container', id: name, owner: owner === 'dead' ? 'gone' : owner }))
    },
    livingResourcesOf: (ids) =>
      containers(host)
        .filter(({ name }) => ids.has(name))
        .map(({ name }) => ({ kind: 'container', id: name, owner: 'alive' })),
    removesItself: true,
    runDirectories: () => [],
    namesOnHost: () => {
      const names = ownedBy(process.pid)
      return [...names, wordsOf(host, 'inspect', '--format', '{{json .Config.Labels}}', ...names)]
    },
    close: () => Promise.resolve(),
  }
}

/** The address of the daemon of an engine under test. */
export function daemonOf(engine: EngineUnderTest): string {
  return (JSON.parse(engine.state) as State).host
}

/** The image of an engine under test. */
export function imageOf(engine: EngineUnderTest): string {
  return (JSON.parse(engine.state) as State).image
}

/** The state of this engine with some options changed. */
export function stateWith(engine: EngineUnderTest, changes: Partial<State>): string {
  return JSON.stringify({ ...(JSON.parse(engine.state) as State), ...changes })
}

/** The state for `openEngine`, from an image and DOCKER_HOST. */
export function stateFor(image: string): string {
  return JSON.stringify({ image, host: process.env['DOCKER_HOST'] ?? DEFAULT_HOST } satisfies State)
}

/** Names and contents of the files that a container has changed. */
function contentsBelow(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  return entries.flatMap((entry) => {
    const path = join(entry.parentPath, entry.name)
    return [path, ...(entry.isFile() ? [readFileSync(path, 'latin1')] : [])]
  })
}
