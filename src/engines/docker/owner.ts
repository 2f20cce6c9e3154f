import { randomUUID } from 'node:crypto'
import { markOfThisProcess, type OwnerMark, type OwnerState, pidOf, stateOf } from '../../support/index.ts'

/** Labels that identify the owner of a container. */
export const LABEL = {
  sandbox: 'sandglass.sandbox',
  owner: 'sandglass.owner',
  engineId: 'sandglass.engine-id',
  bootId: 'sandglass.boot-id',
  created: 'sandglass.created',
} as const

/** Returns the labels for the containers of one engine: this process, the boot id of the machine, and an id of the engine. */
export function ownerLabels(): Record<string, string> {
  const { owner, bootId } = markOfThisProcess()
  return { [LABEL.owner]: owner, [LABEL.bootId]: bootId, [LABEL.engineId]: randomUUID() }
}

/** Returns the process id in an owner label; null without a valid one. */
export function ownerPid(labels: Readonly<Record<string, string>>): number | null {
  return pidOf(markIn(labels))
}

/** Returns the state of an owner: unknown on another machine, in another pid namespace, or if /proc hides the process. */
export function ownerState(labels: Readonly<Record<string, string>>): OwnerState {
  return stateOf(markIn(labels))
}

function markIn(labels: Readonly<Record<string, string>>): OwnerMark {
  return { owner: labels[LABEL.owner], bootId: labels[LABEL.bootId] }
}
