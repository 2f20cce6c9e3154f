import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { listGroups, findCgroups } from '../../src/engines/local/cgroup-host.ts'
import { DAEMON_PREFIX } from './daemon-remains.ts'
import { descendantsOf } from './processes.ts'

/** The current resources of a host process and of the sandboxes of one state directory: lists by name. */
export type Resources = Readonly<Record<string, readonly string[]>>

/** Garbage collection and the test runner open and close descriptors of their own. */
const DESCRIPTOR_SLACK = 5
const DESCRIPTORS = 'descriptors'

/** Processes, control groups of the named sandboxes, mounts, records, files, locks and descriptors of a host process. */
export function resourcesOf(stateDir: string, sandboxIds: ReadonlySet<string>, host: number = process.pid): Resources {
  return {
    ...ofHost(host),
    'control groups': listGroups(findCgroups()).filter((path) => sandboxIds.has(basename(path))),
    mounts: mountsOf(host)
      .filter((line) => !isOfADaemon(line))
      .map((line) => line.replace(/^\d+ \d+ /, '')),
    records: listOrEmpty(join(stateDir, 'sandboxes')),
    'entries of the state directory': listOrEmpty(stateDir),
    'locks of slots': heldLocks(join(stateDir, 'slots')),
  }
}

/** Resources of a host process with any engine: its descendants and descriptors. */
export function ofHost(host: number): Resources {
  return { processes: descendantsOf(host).map(String), [DESCRIPTORS]: descriptors(host) }
}

/** Describes new resources; undefined when there are none. */
export function addedResources(before: Resources, now: Resources): string | undefined {
  const problems = Object.entries(now).flatMap(([name, items]) => {
    const known = new Set(before[name])
    const added = items.filter((item) => !known.has(item))
    if (name === DESCRIPTORS && items.length - known.size <= DESCRIPTOR_SLACK) return []
    return added.length === 0 ? [] : [`${added.length} ${name}: ${added.slice(0, 5).join(', ')}`]
  })
  return problems.length === 0 ? undefined : problems.join('; ')
}

/** Excludes mounts of Docker, because other tests have containers or private daemons meanwhile. */
function isOfADaemon(mount: string): boolean {
  const point = mount.split(' ')[4] ?? ''
  return point.startsWith(DAEMON_PREFIX) || /\/(?:overlay2|netns|containers)\//.test(point)
}

/** Locked files of a directory. */
function heldLocks(directory: string): string[] {
  const inodes = new Set(lines('/proc/locks').map((line) => line.split(/\s+/)[5]?.split(':')[2]))
  return listOrEmpty(directory).filter((name) =>
    inodes.has(String(statSync(join(directory, name), { throwIfNoEntry: false })?.ino)),
  )
}

/** The lines of its mount table; empty when the host has ended. */
function mountsOf(host: number): string[] {
  try {
    return lines(`/proc/${host}/mountinfo`)
  } catch {
    return []
  }
}

function descriptors(host: number): string[] {
  return listOrEmpty(`/proc/${host}/fd`).flatMap((fd) => {
    try {
      return `${fd} ${readlinkSync(`/proc/${host}/fd/${fd}`)}`
    } catch {
      return []
    }
  })
}

function lines(path: string): string[] {
  return readFileSync(path, 'utf8').trim().split('\n')
}

function listOrEmpty(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
