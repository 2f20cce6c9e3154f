import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { errnoOf } from '../../errors/index.ts'
import { pidNamespace, startOf, statusOf } from '../../support/index.ts'

/** Labels of a container that say whose it is. */
export const LABEL = {
  sandbox: 'sandglass.sandbox',
  owner: 'sandglass.owner',
  lease: 'sandglass.lease',
  bootId: 'sandglass.boot-id',
  created: 'sandglass.created',
} as const

/** Whether the process that made a container still runs, as far as can be told from here. */
export type OwnerState = 'alive' | 'dead' | 'unknown'

/** The labels of one engine: this process, and which of its engines. */
export function ownerLabels(): Record<string, string> {
  return { [LABEL.owner]: self(), [LABEL.bootId]: bootId(), [LABEL.lease]: randomUUID() }
}

/** The process id that an owner label names; null when it names none. */
export function ownerPid(labels: Readonly<Record<string, string>>): number | null {
  const pid = Number(/^[^:]*:(\d+):/.exec(labels[LABEL.owner] ?? '')?.[1])
  return Number.isSafeInteger(pid) && pid > 0 ? pid : null
}

/** An owner on another machine, in another pid namespace or behind another user's /proc cannot be seen: it is unknown. */
export function ownerState(labels: Readonly<Record<string, string>>): OwnerState {
  const [namespace, , start] = labels[LABEL.owner]?.split(':') ?? []
  const pid = ownerPid(labels)
  if (pid === null || start === undefined || start === '' || bootId() === '') return 'unknown'
  if (labels[LABEL.bootId] !== bootId() || namespace !== pidNamespace()) return 'unknown'
  const found = statusOf(pid)
  if (found !== undefined) return found.lives && found.start === start ? 'alive' : 'dead'
  return exists(pid) ? 'unknown' : 'dead'
}

function self(): string {
  return `${pidNamespace()}:${process.pid}:${startOf(process.pid) ?? ''}`
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return '' // no Linux: containers of dead owners end by themselves, and nobody can prove whose the rest are
  }
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) !== 'ESRCH'
  }
}
