import { readdirSync, readFileSync } from 'node:fs'

/** A process of this machine, from /proc. */
export interface HostProcess {
  readonly pid: number
  /** At most 15 characters. */
  readonly name: string
  readonly parent: number
  readonly state: string
  readonly uid: number
  /** Its pid in the innermost pid namespace. */
  readonly insidePid: number
}

/** One process; undefined when it has ended or is a zombie. */
export function processOf(pid: number): HostProcess | undefined {
  try {
    const fields = new Map(
      readFileSync(`/proc/${pid}/status`, 'utf8')
        .split('\n')
        .map((line) => line.split(':\t'))
        .map(([name = '', value = '']) => [name, value.trim()]),
    )
    const state = fields.get('State')?.slice(0, 1) ?? '?'
    if (state === 'Z' || state === 'X') return undefined
    return {
      pid,
      name: fields.get('Name') ?? '',
      parent: Number(fields.get('PPid')),
      state,
      uid: Number(fields.get('Uid')?.split('\t')[0]),
      insidePid: Number(fields.get('NSpid')?.split('\t').at(-1)),
    }
  } catch {
    return undefined
  }
}

/** Every living process of this machine. */
export function allProcesses(): HostProcess[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (processOf(Number(name)) ?? []) : []))
}

/** The living descendants of a process. */
export function descendantsOf(root: number): number[] {
  const all = allProcesses()
  const found: number[] = []
  for (let parents = [root]; parents.length > 0;) {
    const children = all.filter(({ parent }) => parents.includes(parent)).map(({ pid }) => pid)
    found.push(...children)
    parents = children
  }
  return found
}

/** The arguments of a process, each ended by a NUL; empty when it is gone. */
export function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

/** CPU time of all threads of a process, in milliseconds; 0 when it has ended. */
export function cpuMs(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]))
      .reduce((sum, ns) => sum + ns / 1e6, 0)
  } catch {
    return 0
  }
}
