import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errnoOf, shortageError } from '../../errors/index.ts'
import { makeDirectory, startOf } from '../../support/index.ts'
import type { EnforcedLimit, SandboxLimits } from '../../sandbox/index.ts'

/** Name of the directory below which every group of this product lies. */
export const GROUP_PARENT = 'sandglass'

/** Where control groups can be made on this machine. */
export interface CgroupHost {
  readonly version: 1 | 2 | null
  /** What the groups made here hold a sandbox to. */
  readonly enforces: readonly EnforcedLimit[]
  /** Directories of which each sandbox gets a child. */
  readonly parents: readonly CgroupParent[]
  /** Why something is missing, for people. */
  readonly problems: readonly string[]
}

interface CgroupParent {
  readonly path: string
  readonly controllers: readonly string[]
}

/** The groups of one sandbox. */
export interface Cgroup {
  readonly paths: readonly string[]
  /** Moves a process in; everything that it starts later is in, too. Milliseconds of waiting in the kernel. */
  add(pid: number): Promise<void>
  /** The limits for which the kernel names this group as the one of a process. `text` is replaced by tests only. */
  holds(pid: number, text?: string): EnforcedLimit[]
  /** Whether its processes get little of a busy processor, or their share. */
  setBackground(on: boolean): void
  /**
   * Lifts the CPU limit until every one of these was disposed of. Never throws itself; disposing throws when the limit
   * cannot be put back on a group that is still there.
   */
  liftCpu(): Disposable
  /** How many processes the kernel killed in it for memory; null when that is not counted. Keeps its last value. */
  memoryKills(): number | null
  /** Gives back what reading the counter holds. The groups themselves are removed by {@link removeGroup}. */
  close(): void
}

const CONTROLLERS = ['memory', 'pids', 'cpu'] as const
const LIMIT_OF = { memory: 'memory', pids: 'pids', cpu: 'cpu' } as const

/** Finds out by trying where groups can be made. `root` and `self` are replaced by tests only. */
export function findCgroups(root = '/sys/fs/cgroup', self = '/proc/self/cgroup'): CgroupHost {
  const own = ownGroups(self)
  const two = own.get('') === undefined ? undefined : findV2(root, own.get('') as string)
  if (two !== undefined && two.enforces.length > 0) return two
  return findV1(root, own, two?.problems ?? [])
}

function findV2(root: string, own: string): CgroupHost | undefined {
  if (!existsSync(join(root, 'cgroup.controllers'))) return undefined
  const problems: string[] = []
  // A group with processes of its own cannot pass controllers on, so look upwards for one that can.
  for (let at = join(root, own); at.startsWith(root.replace(/\/$/, '')); at = dirname(at)) {
    const offered = words(join(at, 'cgroup.controllers'))
    const wanted = CONTROLLERS.filter((name) => offered.includes(name))
    enable(at, wanted)
    const passedOn = words(join(at, 'cgroup.subtree_control')).filter((name) => wanted.includes(name as 'cpu'))
    if (passedOn.length > 0) {
      const parent = join(at, GROUP_PARENT)
      const problem = tryMake(parent)
      if (problem === undefined) {
        enable(parent, passedOn)
        const controllers = words(join(parent, 'cgroup.subtree_control')).filter((name) =>
          wanted.includes(name as 'cpu'),
        )
        if (controllers.length > 0)
          return { version: 2, enforces: limitsOf(controllers), parents: [{ path: parent, controllers }], problems }
      } else {
        problems.push(problem)
      }
    }
    if (at === root) break
  }
  return {
    version: null,
    enforces: [],
    parents: [],
    problems: problems.length > 0 ? problems : [`no group below ${root} passes controllers on`],
  }
}

function findV1(root: string, own: Map<string, string>, earlier: readonly string[]): CgroupHost {
  const parents: CgroupParent[] = []
  const problems = [...earlier]
  for (const controller of CONTROLLERS) {
    const entry = [...own].find(([names]) => names.split(',').includes(controller))
    const mount = [controller, entry?.[0] ?? controller, 'cpu,cpuacct']
      .map((name) => join(root, name))
      .find((path) => existsSync(path))
    if (mount === undefined || entry === undefined) {
      problems.push(`no control group controller ${controller}`)
      continue
    }
    // Inside a container the own group is mounted as the root of the tree.
    const base = existsSync(join(mount, entry[1])) ? join(mount, entry[1]) : mount
    const parent = join(base, GROUP_PARENT)
    const problem = tryMake(parent)
    if (problem === undefined) parents.push({ path: parent, controllers: [controller] })
    else problems.push(problem)
  }
  const enforces = limitsOf(parents.flatMap((parent) => parent.controllers))
  return { version: parents.length > 0 ? 1 : null, enforces, parents, problems }
}

/** Makes the groups of one sandbox and sets its limits. Throws the error of the failed system call, leaving nothing. */
export function makeCgroup(host: CgroupHost, id: string, limits: SandboxLimits): Cgroup {
  const paths: string[] = []
  const existing = (name: string): string | undefined =>
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
    counter = openCounter(existing('memory.events') ?? existing('memory.oom_control'))
  } catch (error) {
    for (const path of paths) removeGroup(path)
    throw error
  }
  const background = backgroundSwitch(existing)
  const quota = existing('cpu.max') ?? existing('cpu.cfs_quota_us')
  return {
    paths,
    add: async (pid) => {
      const since = startOf(pid)
      for (const path of paths) {
        await writeFile(join(path, 'cgroup.procs'), String(pid))
        if (startOf(pid) !== since) throw new Error(`the process ${pid} ended before it was in its control groups`)
      }
    },
    holds: (pid, text) => {
      const groups = ownGroups(`/proc/${pid}/cgroup`, text)
      const held = host.parents.flatMap(({ controllers }) =>
        controllers.filter((name) => {
          const group = [...groups].find(([names]) => names.split(',').includes(host.version === 2 ? '' : name))
          return group?.[1].endsWith(`/${GROUP_PARENT}/${id}`) === true
        }),
      )
      return limitsOf(held)
    },
    setBackground: background,
    liftCpu: lifterOf(quota, quotaText(host.version, null), quotaText(host.version, limits.cpus)),
    memoryKills: () => counter.read(),
    close: () => counter.close(),
  }
}

/**
 * Leaves the processor to whoever wants it: by cpu.idle (Linux 5.15), which gives it up at once when somebody else wakes,
 * else by a sixteenth of the weight, which does so at the end of a slice.
 */
function backgroundSwitch(existing: (name: string) => string | undefined): (on: boolean) => void {
  const [path, yes, no] = (
    [
      [existing('cpu.idle'), '1', '0'],
      [existing('cpu.weight'), '6', '100'],
      [existing('cpu.shares'), '64', '1024'],
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
    if (version === 2) return set('cpu.max', quotaText(version, limits.cpus))
    set('cpu.cfs_period_us', String(PERIOD_US))
    return set('cpu.cfs_quota_us', quotaText(version, limits.cpus))
  }
  if (version === 2) {
    set('memory.max', String(limits.memoryBytes))
    if (existsSync(join(path, 'memory.swap.max'))) set('memory.swap.max', '0')
    return undefined
  }
  set('memory.limit_in_bytes', String(limits.memoryBytes))
  const withSwap = join(path, 'memory.memsw.limit_in_bytes')
  if (existsSync(withSwap)) writeFileSync(withSwap, String(limits.memoryBytes))
  // Version 1 counts the buffers of TCP and UDP apart, and without a limit of theirs not at all.
  const ofSockets = join(path, 'memory.kmem.tcp.limit_in_bytes')
  if (existsSync(ofSockets)) writeFileSync(ofSockets, String(limits.memoryBytes))
  return undefined
}

const PERIOD_US = 100_000
/** What the kernel says of the files of a group that was removed. */
const GONE: readonly (string | undefined)[] = ['ENOENT', 'ENODEV']

/** CPU time in each period, as the version writes it; null for all there is. */
function quotaText(version: 1 | 2 | null, cpus: number | null): string {
  const quota = cpus === null ? null : Math.max(1000, Math.round(cpus * PERIOD_US))
  return version === 2 ? `${quota ?? 'max'} ${PERIOD_US}` : String(quota ?? -1)
}

/** Writes `lifted` for the first who wants it and `limited` after the last. */
function lifterOf(path: string | undefined, lifted: string, limited: string): () => Disposable {
  let lifts = 0
  const write = (text: string): void => {
    if (path !== undefined) writeFileSync(path, text)
  }
  return () => {
    try {
      write(lifted)
    } catch {
      // it stays in force, or the group is gone
    }
    lifts += 1
    let isOver = false
    return {
      [Symbol.dispose]() {
        if (isOver) return
        isOver = true
        lifts -= 1
        if (lifts > 0) return
        try {
          write(limited)
        } catch (error) {
          if (!GONE.includes(errnoOf(error))) throw error
        }
      },
    }
  }
}

/** The counter is read before and after every run, so its file stays open. */
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
        // the group is gone: what was counted last stands
      }
      return last
    },
    close() {
      if (fd !== undefined) closeSync(fd)
      fd = undefined
    },
  }
}

/** Ids of processes in a group; empty when it is gone. Throws the error of a host that is too short of something to look. */
export function groupMembers(path: string): number[] {
  try {
    return readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number)
  } catch (error) {
    if (shortageError(error, path) !== undefined) throw error // one that seemed empty would be removed
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

/** Groups of this product that exist, whoever made them. */
export function existingGroups(host: CgroupHost): string[] {
  return host.parents.flatMap(({ path }) => {
    try {
      return readdirSync(path, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(path, entry.name))
    } catch {
      return []
    }
  })
}

/** `controllers → path` of a process by its file in /proc; the empty name is version 2. */
function ownGroups(self: string, text?: string): Map<string, string> {
  try {
    const lines = (text ?? readFileSync(self, 'utf8')).trim().split('\n')
    return new Map(lines.map((line) => line.split(':')).map(([, names = '', ...path]) => [names, path.join(':')]))
  } catch (error) {
    if (shortageError(error, self) !== undefined) throw error // it has groups all the same
    return new Map()
  }
}

function enable(group: string, controllers: readonly string[]): void {
  for (const name of controllers) {
    try {
      writeFileSync(join(group, 'cgroup.subtree_control'), `+${name}`)
    } catch {
      // told by what the file says afterwards
    }
  }
}

function words(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split(/\s+/).filter(Boolean)
  } catch {
    return []
  }
}

/** What keeps a group from being made, or undefined. */
function tryMake(parent: string): string | undefined {
  const probe = join(parent, `probe-${process.pid}`)
  try {
    makeDirectory(probe)
    rmdirSync(probe)
    return undefined
  } catch (error) {
    return `${parent} cannot be made: ${errnoOf(error) ?? String(error)}`
  }
}

function limitsOf(controllers: readonly string[]): EnforcedLimit[] {
  return CONTROLLERS.filter((name) => controllers.includes(name)).map((name) => LIMIT_OF[name])
}
