import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { allProcesses } from './processes.ts'

/** Prefix of the directory names of private daemons, before the pid of their test runner. */
export const DAEMON_PREFIX = '/tmp/sandglass-dockerd-'
const SHIM_SOCKETS = '/run/containerd/s'

/** Ends and removes all resources of a private daemon in any state. Synchronous, because it also runs at exit. */
export function removeDaemon(directory: string): void {
  const containers = containersOf(directory)
  endProcesses(directory, containers)
  unmountBelow(directory)
  for (const id of containers) removeControlGroups(id)
  removeDeadShimSockets()
  rmSync(directory, { recursive: true, force: true })
}

/** Removes daemons whose test runner was killed. */
export function removeOrphans(): void {
  const parent = dirname(DAEMON_PREFIX)
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(basename(DAEMON_PREFIX))) continue
    const pid = Number(name.slice(basename(DAEMON_PREFIX).length).split('-')[0])
    if (Number.isSafeInteger(pid) && pid > 0 && !existsSync(`/proc/${pid}`)) removeDaemon(join(parent, name))
  }
}

/** Finds daemon, containerd and shims by the directory in their arguments, and processes in containers by their group. */
function endProcesses(directory: string, containers: readonly string[]): void {
  for (let round = 0; round < 50; round++) {
    const own = allProcesses().filter(({ pid }) => belongs(pid, directory, containers))
    if (own.length === 0) return
    for (const { pid } of own) kill(pid)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20) // a killed process needs a moment
  }
}

function belongs(pid: number, directory: string, containers: readonly string[]): boolean {
  if (pid === process.pid) return false
  const words = readOrEmpty(`/proc/${pid}/cmdline`).split('\0')
  if (
    ['dockerd', 'containerd', 'containerd-shim', 'runsc', 'runc'].some((name) =>
      basename(words[0] ?? '').startsWith(name),
    )
  ) {
    if (words.some((word) => word.includes(`${directory}/`))) return true
  }
  const groups = readOrEmpty(`/proc/${pid}/cgroup`)
  return containers.some((id) => groups.includes(id))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has already ended
  }
}

function unmountBelow(directory: string): void {
  const points = readOrEmpty('/proc/self/mountinfo')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${directory}/`))
  for (const point of points.toReversed()) {
    if (spawnSync('umount', [point]).status !== 0) spawnSync('umount', ['-l', point])
  }
}

function removeControlGroups(id: string): void {
  const hierarchies = ['', ...listOrEmpty('/sys/fs/cgroup')]
  for (const hierarchy of hierarchies) {
    for (const group of [
      join('/sys/fs/cgroup', hierarchy, 'docker', id),
      join('/sys/fs/cgroup', hierarchy, 'system.slice', `docker-${id}.scope`),
    ]) {
      try {
        rmdirSync(group)
      } catch {
        // it does not exist
      }
    }
  }
}

function containersOf(directory: string): string[] {
  return listOrEmpty(join(directory, 'data/containers'))
}

/** Sockets of dead shims, which are outside of the directory. */
function removeDeadShimSockets(): void {
  // Lists the sockets first, then the servers: in the other order, a new socket of another daemon's shim would look dead.
  const there = listOrEmpty(SHIM_SOCKETS)
  const served = readOrEmpty('/proc/net/unix')
  for (const name of there) {
    if (!served.includes(join(SHIM_SOCKETS, name))) rmSync(join(SHIM_SOCKETS, name), { force: true })
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function listOrEmpty(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
