import { readFileSync } from 'node:fs'

/** What is written down about a living sandbox, so that another process can find and remove what is left of it. */
export interface SandboxRecord {
  readonly id: string
  /** The slot that the owner holds: its lock and the name in it tell whether the owner lives. */
  readonly slot: number
  readonly owner: string
  readonly uid: number | null
  readonly host_pid: number
  readonly cgroups: readonly string[]
  readonly created_at: string
}

/** The record in a file, or undefined when the file is gone or holds none. */
export function readRecord(path: string): SandboxRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is SandboxRecord {
  if (typeof value !== 'object' || value === null) return false
  const { id, slot, owner, uid, host_pid: hostPid, cgroups } = value as Partial<SandboxRecord>
  return (
    typeof id === 'string' &&
    /^[\w-]{1,64}$/.test(id) &&
    Number.isInteger(slot) &&
    typeof owner === 'string' &&
    (uid === null || Number.isInteger(uid)) &&
    Number.isInteger(hostPid) &&
    Array.isArray(cgroups) &&
    cgroups.every((path) => typeof path === 'string' && /\/sandglass\/[\w-]+$/.test(path))
  )
}
