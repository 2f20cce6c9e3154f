import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { allProcesses, commandLineOf, descendantsOf } from '../../test/support/processes.ts'

/** Resources that belong to no living sandbox: names by kind, without empty kinds. */
export type Remains = Readonly<Record<string, readonly string[]>>

/** A directory to which only the soak writes. */
export interface Place {
  readonly directory: string
  /** Files that do not belong to a sandbox: locks, staged files. */
  readonly known: ReadonlySet<string>
}

/** Files and directories of a soak without the name of a living sandbox. */
export function filesLeft({ directory, known }: Place, living: Iterable<string>): string[] {
  const ids = [...living]
  return entriesOf(directory).filter((path) => !known.has(path) && !ids.some((id) => path.includes(id)))
}

/** Lists all files and directories below a directory, relative to it. */
export function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: 'utf8' })
  } catch {
    return [] // an entry disappeared meanwhile; the caller checks again
  }
}

/** Mounts of the host whose line in mountinfo contains one of the marks. */
export function mountsOf(marks: readonly string[]): string[] {
  return textOf('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => marks.some((mark) => line.includes(mark)))
}

/** Processes with the directory of a soak in their command line that are not descendants of the host. */
export function orphansOf(directory: string, host: number = process.pid): string[] {
  const own = new Set([host, ...descendantsOf(host), ...ancestorsOf(host)])
  return allProcesses()
    .filter(({ pid }) => !own.has(pid) && commandLineOf(pid).includes(join(directory, '/')))
    .map(({ pid }) => `${pid} ${describeProcess(pid)}`)
}

function ancestorsOf(pid: number): number[] {
  const parents = new Map(allProcesses().map((process) => [process.pid, process.parent]))
  const found: number[] = []
  for (let at = parents.get(pid); at !== undefined; at = parents.get(at)) found.push(at)
  return found
}

/** The start of a command line, for a person who looks for a leak. */
export function describeProcess(pid: number): string {
  return commandLineOf(pid).split('\0').join(' ').trim().slice(0, 120)
}

/** Removes the empty kinds. */
export function withoutEmpty(remains: Remains): Remains {
  return Object.fromEntries(Object.entries(remains).filter(([, items]) => items.length > 0))
}

/** Reads a file; empty text when it is gone. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
