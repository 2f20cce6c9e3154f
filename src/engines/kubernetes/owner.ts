import { randomUUID } from 'node:crypto'
import { markOfThisProcess, type OwnerState, stateOf } from '../../support/index.ts'

/** The label of every pod of Sandglass, by which they are found. */
export const MANAGED: readonly [name: string, value: string] = ['app.kubernetes.io/managed-by', 'sandglass']
/** The label by which NetworkPolicies select the pods of sandboxes. */
export const ISOLATED: Readonly<Record<string, string>> = { 'sandglass.dev/network': 'none' }
const ENGINE_LABEL = 'sandglass.dev/engine'
/** Labels have no colon, so the owner is an annotation. */
const OWNER = 'sandglass.dev/owner'
const BOOT_ID = 'sandglass.dev/boot-id'

/** The labels and annotations of the pods of one engine: this process, the boot id of its machine, and an id of the engine. */
export function ownerMarks(): {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
} {
  const { owner, bootId } = markOfThisProcess()
  return {
    labels: { [MANAGED[0]]: MANAGED[1], [ENGINE_LABEL]: randomUUID() },
    annotations: { [OWNER]: owner, [BOOT_ID]: bootId },
  }
}

/** The state of the owner of a pod: unknown on another machine. */
export function ownerStateOf(annotations: Readonly<Record<string, string>> = {}): OwnerState {
  return stateOf({ owner: annotations[OWNER], bootId: annotations[BOOT_ID] })
}
