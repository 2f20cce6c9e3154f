import { readFileSync } from 'node:fs'
import { errnoOf } from '../errors/index.ts'
import { pidNamespace, startOf, statusOf } from './process-identity.ts'

/** The state of the process that made something, if this process can see it. */
export type OwnerState = 'alive' | 'dead' | 'unknown'

/** A process that owns something outside of it, for labels: its pid namespace, pid and start, and the boot id of its machine. */
export interface OwnerMark {
  readonly owner: string | undefined
  readonly bootId: string | undefined
}

/** Returns the mark of this process. */
export function markOfThisProcess(): { readonly owner: string; readonly bootId: string } {
  return { owner: `${pidNamespace()}:${process.pid}:${startOf(process.pid) ?? ''}`, bootId: bootId() }
}

/** Returns the process id in a mark; null without a valid one. */
export function pidOf({ owner = '' }: OwnerMark): number | null {
  const pid = Number(/^[^:]*:(\d+):/.exec(owner)?.[1])
  return Number.isSafeInteger(pid) && pid > 0 ? pid : null
}

/** Returns the state of an owner: unknown on another machine, in another pid namespace, or if /proc hides the process. */
export function stateOf(mark: OwnerMark): OwnerState {
  const [namespace, , start] = mark.owner?.split(':') ?? []
  const pid = pidOf(mark)
  if (pid === null || start === undefined || start === '' || bootId() === '') return 'unknown'
  if (mark.bootId !== bootId() || namespace !== pidNamespace()) return 'unknown'
  const found = statusOf(pid)
  if (found !== undefined) return found.lives && found.start === start ? 'alive' : 'dead'
  return processExists(pid) ? 'unknown' : 'dead'
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return '' // not Linux: every owner is unknown, and a container whose owner died still ends by itself
  }
}

function processExists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) !== 'ESRCH'
  }
}
