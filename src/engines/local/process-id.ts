import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { startOf } from '../../support/index.ts'
import { GROUP_PARENT } from './cgroup-host.ts'

/** Kills a process unless its id was reused; returns true if it was killed. */
export function killSame(pid: number, start: string | undefined): boolean {
  return start !== undefined && startOf(pid) === start && kill(pid)
}

/** Kills a process unless its id was reused outside this control group. */
export function killMember(pid: number, group: string): boolean {
  return isIn(pid, group) && kill(pid)
}

/** True if a process is in this group of Sandglass, as the kernel reports it. Only tests replace `text`. */
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
