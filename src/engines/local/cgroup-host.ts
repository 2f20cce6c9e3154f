import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf, shortageError } from '../../errors/index.ts'
import type { EnforcedLimit } from '../../sandbox/index.ts'
import { makeDirectory } from '../../support/index.ts'

/** Name of the directory that contains every group of Sandglass. */
export const GROUP_PARENT = 'sandglass'

/** The places on this machine where control groups can be made. */
export interface CgroupHost {
  readonly version: 1 | 2 | null
  /** The limits that groups made here enforce. */
  readonly enforces: readonly EnforcedLimit[]
  /** Directories in which each sandbox gets a group. */
  readonly parents: readonly CgroupParent[]
  /** The reasons for missing limits, for people. */
  readonly problems: readonly string[]
}

interface CgroupParent {
  readonly path: string
  readonly controllers: readonly string[]
}

const CONTROLLERS = ['memory', 'pids', 'cpu'] as const
const LIMIT_OF = { memory: 'memory', pids: 'pids', cpu: 'cpu' } as const

/** Tries where groups can be made. Only tests replace `root` and `self`. */
export function findCgroups(root = '/sys/fs/cgroup', self = '/proc/self/cgroup'): CgroupHost {
  const own = readGroups(self)
  const two = own.get('') === undefined ? undefined : findV2(root, own.get('') as string)
  if (two !== undefined && two.enforces.length > 0) return two
  return findV1(root, own, two?.problems ?? [])
}

function findV2(root: string, own: string): CgroupHost | undefined {
  if (!existsSync(join(root, 'cgroup.controllers'))) return undefined
  const problems: string[] = []
  // A group with processes of its own cannot delegate controllers, so look upwards for one that can.
  for (let at = join(root, own); at.startsWith(root.replace(/\/$/, '')); at = dirname(at)) {
    const offered = readWords(join(at, 'cgroup.controllers'))
    const wanted = CONTROLLERS.filter((name) => offered.includes(name))
    enable(at, wanted)
    const delegated = readWords(join(at, 'cgroup.subtree_control')).filter((name) => wanted.includes(name as 'cpu'))
    if (delegated.length > 0) {
      const parent = join(at, GROUP_PARENT)
      const problem = tryMake(parent)
      if (problem === undefined) {
        enable(parent, delegated)
        const controllers = readWords(join(parent, 'cgroup.subtree_control')).filter((name) =>
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
    problems:
      problems.length > 0
        ? problems
        : [`no control group below ${root} delegates the controllers ${CONTROLLERS.join(', ')}`],
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
      problems.push(`the control group controller ${controller} is missing`)
      continue
    }
    // Inside a container, the group of this process is mounted as the root of the tree.
    const base = existsSync(join(mount, entry[1])) ? join(mount, entry[1]) : mount
    const parent = join(base, GROUP_PARENT)
    const problem = tryMake(parent)
    if (problem === undefined) parents.push({ path: parent, controllers: [controller] })
    else problems.push(problem)
  }
  const enforces = limitsOf(parents.flatMap((parent) => parent.controllers))
  return { version: parents.length > 0 ? 1 : null, enforces, parents, problems }
}

/** Lists the groups of Sandglass, of any owner. */
export function listGroups(host: CgroupHost): string[] {
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

/** Reads the control groups of a process from its file in /proc: `controllers → path`. The empty name is version 2. */
export function readGroups(self: string, text?: string): Map<string, string> {
  try {
    const lines = (text ?? readFileSync(self, 'utf8')).trim().split('\n')
    return new Map(lines.map((line) => line.split(':')).map(([, names = '', ...path]) => [names, path.join(':')]))
  } catch (error) {
    // The process has groups; only the host lacks the resources to read them now.
    if (shortageError(error, self) !== undefined) throw error
    return new Map()
  }
}

function enable(group: string, controllers: readonly string[]): void {
  for (const name of controllers) {
    try {
      writeFileSync(join(group, 'cgroup.subtree_control'), `+${name}`)
    } catch {
      // the caller reads the file afterwards to see which are enabled
    }
  }
}

function readWords(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split(/\s+/).filter(Boolean)
  } catch {
    return []
  }
}

/** Makes and removes a group; returns the reason if that fails. */
function tryMake(parent: string): string | undefined {
  const probe = join(parent, `probe-${process.pid}`)
  try {
    makeDirectory(probe)
    rmdirSync(probe)
    return undefined
  } catch (error) {
    return `${parent} cannot be created: ${errnoOf(error) ?? String(error)}`
  }
}

/** Returns the limits that controllers enforce. */
export function limitsOf(controllers: readonly string[]): EnforcedLimit[] {
  return CONTROLLERS.filter((name) => controllers.includes(name)).map((name) => LIMIT_OF[name])
}
