import { readFileSync } from 'node:fs'
import { isLiving, pidNamespace, startOf } from '../support/index.ts'
import type { OwnerProcess } from './record.ts'

/** This process as other processes of this machine can find it; null where /proc does not show it. */
export function thisProcess(): OwnerProcess | null {
  const boot = bootId()
  const namespace = pidNamespace()
  const start = startOf(process.pid)
  if (boot === '' || namespace === '' || start === undefined) return null
  return { boot, namespace, pid: process.pid, start }
}

/** True if a process ran on this machine, and is gone. In doubt, false. */
export function isGone(owner: OwnerProcess | null): boolean {
  if (owner === null || owner.boot !== bootId() || owner.namespace !== pidNamespace()) return false
  return !isLiving(owner.pid, owner.start)
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}
