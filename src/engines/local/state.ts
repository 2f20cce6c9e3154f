import { resolve } from 'node:path'
import { Records } from './records.ts'
import { Slots } from './slots.ts'
import { Staging } from './staging.ts'
import { prepareStatePath } from './state-path.ts'

/**
 * The state that all processes with the same state directory share: its slots, the records of sandboxes, and copies of files
 * for them.
 */
export class StateDirectory {
  readonly path: string
  readonly slots: Slots
  readonly records: Records
  readonly staging: Staging

  constructor(path: string) {
    this.path = resolve(path)
    this.slots = new Slots(this.path)
    this.records = new Records(this.path)
    this.staging = new Staging(this.path)
  }

  /**
   * Makes the directory if it is missing, so that sandboxes with this uid can read the copies in it.
   * @throws SandglassError `state_dir_unusable` or `no_space`, naming the path.
   */
  prepare(uid: number): void {
    prepareStatePath(this.path, ['slots', 'sandboxes', 'staged', 'private'], uid)
    this.staging.prepare(uid)
  }
}
