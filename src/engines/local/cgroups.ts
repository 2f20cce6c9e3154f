import { closeSync, existsSync, mkdirSync, openSync, readSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, shortageError } from '../../errors/index.ts'
import { makeDirectory, startOf } from '../../support/index.ts'
import { CpuQuota, type EnforcedLimit, type SandboxLimits } from '../../sandbox/index.ts'
import { type CgroupHost, GROUP_PARENT, limitsOf, readGroups } from './cgroup-host.ts'

/** The groups of one sandbox. */
export interface Cgroup {
  readonly paths: readonly string[]
  /** Moves a process into the groups, and with it all children that it starts later. The kernel can take milliseconds. */
  add(pid: number): Promise<void>
  /** Returns the limits whose controllers have a process in this group, as the kernel reports it. Only tests replace `text`. */
  holds(pid: number, text?: string): EnforcedLimit[]
  /** Gives its processes a small share of a busy CPU, or their full share again. */
  setBackground(on: boolean): void
  /** Its CPU limit. A change has no effect if the group has none, or is gone. */
  readonly cpu: CpuQuota
  /** The number of OOM kills in it; null if nothing counts them. Keeps its last value when the group is gone. */
  memoryKills(): number | null
  /** Closes the counter of OOM kills. {@link removeGroup} removes the groups themselves. */
  close(): void
}

/** Makes the groups of one sandbox and sets its limits. Throws the error of the failed system call, and then leaves no group. */
export function makeCgroup(host: CgroupHost, id: string, limits: SandboxLimits): Cgroup {
  const paths: string[] = []
  const findFile = (name: string): string | undefined =>
    paths.map((path) => join(path, name)).find((file) => existsSync(file))
  let counter: ReturnType<typeof openCounter>
  try {
    for (const parent of host.parents) {
      const path = join(parent.path, id)
      makeDirectory(parent.path)
      mkdirSync(path)
      paths.push(path)
      for (const controller of parent.controllers) setLimit(host.version, path, controller, limits)
    }
    counter = openCounter(findFile('memory.events') ?? findFile('memory.oom_control'))
  } catch (error) {
    for (const path of paths) removeGroup(path)
    throw error
  }
  const setBackground = makeBackgroundSwitch(findFile)
  const quotaFile = findFile('cpu.max') ?? findFile('cpu.cfs_quota_us')
  const setQuota = async (cpus: number | null): Promise<void> => {
    try {
      if (quotaFile !== undefined) writeFileSync(quotaFile, formatQuota(host.version, cpus))
    } catch (error) {
      if (!GONE.includes(errnoOf(error))) throw error
    }
  }
  return {
    paths,
    add: async (pid) => {
      const since = startOf(pid)
      for (const path of paths) {
        await writeFile(join(path, 'cgroup.procs'), String(pid))
        if (startOf(pid) !== since)
          throw new Error(`the process ${pid} ended before it was moved into its control groups`)
      }
    },
    holds: (pid, text) => {
      const groups = readGroups(`/proc/${pid}/cgroup`, text)
      const held = host.parents.flatMap(({ controllers }) =>
        controllers.filter((name) => {
          const group = [...groups].find(([names]) => names.split(',').includes(host.version === 2 ? '' : name))
          return group?.[1].endsWith(`/${GROUP_PARENT}/${id}`) === true
        }),
      )
      return limitsOf(held)
    },
    setBackground,
    cpu: new CpuQuota(limits.cpus, setQuota),
    memoryKills: () => counter.read(),
    close: () => counter.close(),
  }
}

/**
 * Lowers the priority of a group: by cpu.idle (Linux 5.15), which yields at once when another process wakes, else by a
 * sixteenth of the weight, which yields at the end of a time slice.
 */
function makeBackgroundSwitch(findFile: (name: string) => string | undefined): (on: boolean) => void {
  const [path, yes, no] = (
    [
      [findFile('cpu.idle'), '1', '0'],
      [findFile('cpu.weight'), '6', '100'],
      [findFile('cpu.shares'), '64', '1024'],
    ] as const
  ).find(([found]) => found !== undefined) ?? [undefined, '', '']
  return (on) => {
    if (path !== undefined) writeFileSync(path, on ? yes : no)
  }
}

function setLimit(version: 1 | 2 | null, path: string, controller: string, limits: SandboxLimits): void {
  const set = (file: string, value: string): void => writeFileSync(join(path, file), value)
  if (controller === 'pids') return set('pids.max', String(limits.pids))
  if (controller === 'cpu') {
    if (version === 2) return set('cpu.max', formatQuota(version, limits.cpus))
    set('cpu.cfs_period_us', String(PERIOD_US))
    return set('cpu.cfs_quota_us', formatQuota(version, limits.cpus))
  }
  if (version === 2) {
    set('memory.max', String(limits.memoryBytes))
    if (existsSync(join(path, 'memory.swap.max'))) set('memory.swap.max', '0')
    return undefined
  }
  set('memory.limit_in_bytes', String(limits.memoryBytes))
  const withSwap = join(path, 'memory.memsw.limit_in_bytes')
  if (existsSync(withSwap)) writeFileSync(withSwap, String(limits.memoryBytes))
  // Version 1 counts the buffers of TCP and UDP separately, and only if they have a limit of their own.
  const ofSockets = join(path, 'memory.kmem.tcp.limit_in_bytes')
  if (existsSync(ofSockets)) writeFileSync(ofSockets, String(limits.memoryBytes))
  return undefined
}

const PERIOD_US = 100_000
/** The errors of the kernel for files of a removed group. */
const GONE: readonly (string | undefined)[] = ['ENOENT', 'ENODEV']

/** Formats CPU time per period for this version; null for no limit. */
function formatQuota(version: 1 | 2 | null, cpus: number | null): string {
  const quota = cpus === null ? null : Math.max(1000, Math.round(cpus * PERIOD_US))
  return version === 2 ? `${quota ?? 'max'} ${PERIOD_US}` : String(quota ?? -1)
}

/** Opens the counter of OOM kills. It is read before and after every run, so its file stays open. */
function openCounter(path: string | undefined): { read: () => number | null; close: () => void } {
  let fd = path === undefined ? undefined : openSync(path, 'r')
  const buffer = Buffer.alloc(1024)
  let last: number | null = null
  return {
    read() {
      if (fd === undefined) return last
      try {
        const text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
        const found = /^oom_kill (\d+)$/m.exec(text)?.[1]
        last = found === undefined ? null : Number(found)
      } catch {
        // the group is gone: the last count is final
      }
      return last
    },
    close() {
      if (fd !== undefined) closeSync(fd)
      fd = undefined
    },
  }
}

/** Ids of processes in a group; empty when it is gone. Throws the error of a host that lacks the resources to read it. */
export function groupMembers(path: string): number[] {
  try {
    return readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number)
  } catch (error) {
    if (shortageError(error, path) !== undefined) throw error // a group that seemed empty would be removed
    return []
  }
}

/** Removes a group. False while processes are still in it. */
export function removeGroup(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    return errnoOf(error) === 'ENOENT'
  }
}
