import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { allProcesses, commandLineOf, descendantsOf } from '../../test/support/processes.ts'

/** What is there and belongs to no living sandbox: names by kind. Kinds without any are left out. */
export type Remains = Readonly<Record<string, readonly string[]>>

/** Where the soak and nobody else writes. */
export interface Place {
  readonly directory: string
  /** What lies there whatever sandboxes there are: locks, staged files. */
  readonly known: ReadonlySet<string>
}

/** Files and directories of a soak that name no living sandbox. */
export function filesLeft({ directory, known }: Place, living: Iterable<string>): string[] {
  const ids = [...living]
  return entriesOf(directory).filter((path) => !known.has(path) && !ids.some((id) => path.includes(id)))
}

/** Everything below a directory, by paths relative to it. */
export function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: 'utf8' })
  } catch {
    return [] // something went while it was read: the next look tells
  }
}

/** Mounts that the host sees and whose line names one of these. */
export function mountsOf(marks: readonly string[]): string[] {
  return textOf('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => marks.some((mark) => line.includes(mark)))
}

/** Processes that name the directory of a soak in their command line, and are nobody's child any more. */
export function orphansOf(directory: string, host: number = process.pid): string[] {
  const own = new Set([host, ...descendantsOf(host), ...ancestorsOf(host)])
  return allProcesses()
    .filter(({ pid }) => !own.has(pid) && commandLineOf(pid).includes(join(directory, '/')))
    .map(({ pid }) => `${pid} ${described(pid)}`)
}

function ancestorsOf(pid: number): number[] {
  const parents = new Map(allProcesses().map((process) => [process.pid, process.parent]))
  const found: number[] = []
  for (let at = parents.get(pid); at !== undefined; at = parents.get(at)) found.push(at)
  return found
}

/** A command line in a few words, for a person who looks for a leak. */
export function described(pid: number): string {
  return commandLineOf(pid).split('\0').join(' ').trim().slice(0, 120)
}

/** The kinds that there is something of. */
export function present(remains: Remains): Remains {
  return Object.fromEntries(Object.entries(remains).filter(([, items]) => items.length > 0))
}

/** A file's text; empty when it is gone. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
