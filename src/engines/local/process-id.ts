import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { GROUP_PARENT } from './cgroups.ts'

/** What the kernel says of a process. */
export interface ProcessStatus {
  /** When it started, in ticks since boot: with its number it names one process. */
  readonly start: string
  readonly parent: number
  /** False for a zombie, which only waits for somebody to ask how it ended. */
  readonly lives: boolean
}

/** Undefined when it is gone. */
export function statusOf(pid: number): ProcessStatus | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold anything; the 20th field after it is the time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = '', parent = ''] = fields
    return { start: fields.at(19) ?? '', parent: Number(parent), lives: !/^[ZX]/.test(state) }
  } catch {
    return undefined
  }
}

/** When a process started, undefined when it is gone. */
export function startOf(pid: number): string | undefined {
  return statusOf(pid)?.start
}

/** Whether a process has not ended, and its number is not another one's by now. */
export function isLiving(pid: number, start: string | undefined): boolean {
  const status = statusOf(pid)
  return status !== undefined && status.lives && status.start === start
}

/** Kills a process unless its number is another one's by now; tells whether it did. */
export function killSame(pid: number, start: string | undefined): boolean {
  return start !== undefined && startOf(pid) === start && kill(pid)
}

/** Kills a process unless it is, by now, one that is not in this control group. */
export function killMember(pid: number, group: string): boolean {
  return isIn(pid, group) && kill(pid)
}

/** Whether the kernel names a group of this product as one of a process. `text` is replaced by tests only. */
export function isIn(pid: number, group: string, text?: string): boolean {
  try {
    const lines = (text ?? readFileSync(`/proc/${pid}/cgroup`, 'utf8')).split('\n')
    return lines.some((line) => line.endsWith(`/${GROUP_PARENT}/${basename(group)}`))
  } catch {
    return false
  }
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false // it ended by itself
  }
}
