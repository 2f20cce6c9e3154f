import { readFileSync } from 'node:fs'
import { isLiving, pidNamespace, startOf } from '../support/index.ts'
import type { OwnerProcess } from './record.ts'

/** Identifies this process for other processes of this machine; null without /proc. */
export function thisProcess(): OwnerProcess | null {
  const boot = bootId()
  const namespace = pidNamespace()
  const start = startOf(process.pid)
  if (boot === '' || namespace === '' || start === undefined) return null
  return { boot, namespace, pid: process.pid, start }
}

/** True if a process ran on this machine and has ended. False if that is not certain. */
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
