import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { errnoOf } from '../../errors/index.ts'
import { pidNamespace, startOf, statusOf } from '../../support/index.ts'

/** Labels that identify the owner of a container. */
export const LABEL = {
  sandbox: 'sandglass.sandbox',
  owner: 'sandglass.owner',
  engineId: 'sandglass.engine-id',
  bootId: 'sandglass.boot-id',
  created: 'sandglass.created',
} as const

/** The state of the process that made a container, if this process can see it. */
export type OwnerState = 'alive' | 'dead' | 'unknown'

/** Returns the labels for the containers of one engine: this process, the boot id of the machine, and an id of the engine. */
export function ownerLabels(): Record<string, string> {
  return { [LABEL.owner]: ownerOfThisProcess(), [LABEL.bootId]: bootId(), [LABEL.engineId]: randomUUID() }
}

/** Returns the process id in an owner label; null without a valid one. */
export function ownerPid(labels: Readonly<Record<string, string>>): number | null {
  const pid = Number(/^[^:]*:(\d+):/.exec(labels[LABEL.owner] ?? '')?.[1])
  return Number.isSafeInteger(pid) && pid > 0 ? pid : null
}

/** Returns the state of an owner: unknown on another machine, in another pid namespace, or if /proc hides the process. */
export function ownerState(labels: Readonly<Record<string, string>>): OwnerState {
  const [namespace, , start] = labels[LABEL.owner]?.split(':') ?? []
  const pid = ownerPid(labels)
  if (pid === null || start === undefined || start === '' || bootId() === '') return 'unknown'
  if (labels[LABEL.bootId] !== bootId() || namespace !== pidNamespace()) return 'unknown'
  const found = statusOf(pid)
  if (found !== undefined) return found.lives && found.start === start ? 'alive' : 'dead'
  return processExists(pid) ? 'unknown' : 'dead'
}

function ownerOfThisProcess(): string {
  return `${pidNamespace()}:${process.pid}:${startOf(process.pid) ?? ''}`
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
