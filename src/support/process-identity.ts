import { readFileSync, readlinkSync } from 'node:fs'

/** The status of a process in /proc. */
interface ProcessStatus {
  /** The start time in ticks since boot; with the pid it identifies one process. */
  readonly start: string
  readonly parent: number
  /** False for a zombie, which waits to be reaped. */
  readonly lives: boolean
}

/** The status of a process; undefined if it is gone or /proc does not show it. */
export function statusOf(pid: number): ProcessStatus | undefined {
  const status = readStatus(pid)
  return status === 'unreadable' ? undefined : status
}

function readStatus(pid: number): ProcessStatus | 'unreadable' | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold any characters; the 20th field after it is the start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = '', parent = ''] = fields
    return { start: fields.at(19) ?? '', parent: Number(parent), lives: !/^[ZX]/.test(state) }
  } catch (error) {
    // Without a free descriptor the status is unknown.
    return error instanceof Error && 'code' in error && /^E[MN]FILE$/.test(String(error.code))
      ? 'unreadable'
      : undefined
  }
}

/** The start time of a process; undefined if it is gone. */
export function startOf(pid: number): string | undefined {
  return statusOf(pid)?.start
}

/** True if a process still runs and its pid was not reused. Also true if its status cannot be read. */
export function isLiving(pid: number, start: string | undefined): boolean {
  const status = readStatus(pid)
  if (status === 'unreadable') return start !== undefined && isThere(pid)
  return status !== undefined && status.lives && status.start === start
}

/** The number of the pid namespace of this process; empty if the machine has none. */
export function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? ''
  } catch {
    return ''
  }
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
