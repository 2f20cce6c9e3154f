import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { LABEL, ownerPid } from '../../src/engines/docker/owner.ts'
import { allProcesses, type HostProcess } from './processes.ts'

/** A container of this product, as Docker's own client shows it. */
export interface Container {
  /** Docker's id of it. */
  readonly id: string
  /** The sandbox's id. */
  readonly name: string
  /** The process that made it; null when its label names none. */
  readonly owner: number | null
  /** Equal for all containers of one engine in a process. */
  readonly lease: string
}

const FIELDS = ['{{.ID}}', '{{.Names}}', `{{.Label "${LABEL.owner}"}}`, `{{.Label "${LABEL.engineId}"}}`, '{{.State}}']

/** The existing containers of this product, in any state; or the one of a sandbox. */
export function containers(daemon: string | undefined, sandboxId?: string): Container[] {
  const filter = sandboxId === undefined ? [] : ['--filter', `name=^/?${sandboxId}$`]
  const all = ['ps', '--all', '--no-trunc', '--filter', `label=${LABEL.sandbox}`, ...filter]
  return docker(daemon, ...all, '--format', FIELDS.join('\t'))
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [id = '', name = '', owner = '', lease = '', state = ''] = line.split('\t')
      return { id, name, owner: ownerPid({ [LABEL.owner]: owner }), lease, state }
    })
    .filter(({ id, state }) => state !== 'dead' || !isPhantom(daemon, id))
    .map(({ state: _state, ...container }) => container)
}

/** True for a container that dockerd 20.10 lists after it was killed, although it removed the container while starting. */
function isPhantom(daemon: string | undefined, id: string): boolean {
  return /no such (object|container)/i.test(ask(daemon, ['inspect', id]).said)
}

/** The living processes of containers: each has the id of its container in the paths of its control groups. */
export function processesIn(containerId: string): HostProcess[] {
  return allProcesses().filter(({ pid }) => read(`/proc/${pid}/cgroup`).includes(containerId))
}

/** Mount points of the root directories of containers: id and path of those that still exist. */
export function rootsOf(daemon: string | undefined, which: readonly Container[]): [string, string][] {
  if (which.length === 0) return []
  const format = ['--format', '{{.Id}}\t{{.GraphDriver.Data.MergedDir}}']
  const { stdout } = ask(daemon, ['inspect', ...format, ...which.map(({ id }) => id)])
  return stdout.split('\n').flatMap((line) => {
    const [id, path] = line.split('\t')
    return id === undefined || path === undefined ? [] : [[id, path]]
  })
}

/** Control groups and mounts of this machine whose paths contain one of these ids and paths. */
export function leftOf(marks: readonly string[]): { 'control groups': string[]; mounts: string[] } {
  const hierarchies = ['', 'memory', 'pids', 'cpu', 'cpu,cpuacct', 'freezer', 'systemd', 'unified']
  const groups = marks.flatMap((id) =>
    hierarchies
      .flatMap((name) => [`${name}/docker/${id}`, `${name}/system.slice/docker-${id}.scope`])
      .map((path) => `/sys/fs/cgroup/${path}`)
      .filter((path) => existsSync(path)),
  )
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => marks.some((mark) => line.includes(mark)))
  return { 'control groups': groups, mounts }
}

/**
 * The output of Docker's own client.
 * @throws Error with its message on stderr.
 */
export function docker(daemon: string | undefined, ...args: readonly string[]): string {
  const { status, stdout, said } = ask(daemon, args)
  if (status !== 0) throw new Error(`docker ${args.join(' ')}: ${said}`)
  return stdout
}

/** The whole output of Docker's own client, including errors. */
export function wordsOf(daemon: string | undefined, ...args: readonly string[]): string {
  const { stdout, said } = ask(daemon, args)
  return stdout + said
}

/** While this thread waits for a daemon that hangs, no time limit of a test fires. */
const ANSWER_MS = 60_000

function ask(
  daemon: string | undefined,
  args: readonly string[],
): { status: number | null; stdout: string; said: string } {
  const where = daemon === undefined ? [] : ['--host', daemon]
  const { status, stdout, stderr, error } = spawnSync('docker', [...where, ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    timeout: ANSWER_MS,
  })
  return { status, stdout, said: error?.message ?? stderr }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
