import { randomUUID } from 'node:crypto'
import { lstatSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../../errors/index.ts'
import { type FileLock, isLocked, tryLock } from '../../support/index.ts'
import { listNames, readText, stateError } from './state-path.ts'

/** The slot of one owner in the state directory: a lock, and on a root host the uids that belong to it. */
export interface Slot {
  readonly number: number
  /** The owner id. A later owner of the slot has another one. */
  readonly owner: string
  release(): void
}

/** A slot that has an owner id in it. */
export interface OwnedSlot {
  readonly number: number
  readonly path: string
  /** True while that owner lives. Otherwise it ended without releasing the slot. */
  readonly isHeld: boolean
}

const SLOTS = 512
const OWNER = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** The slots of a state directory, one for each process that makes sandboxes in it. */
export class Slots {
  readonly #state: string
  /** Slots of this process, whose locks need no check. */
  readonly #held = new Set<number>()

  constructor(state: string) {
    this.#state = state
  }

  /**
   * Takes the first free slot for this process.
   * @throws SandglassError `no_uid_left`, `state_dir_unusable` or `no_space`.
   */
  async take(): Promise<Slot> {
    for (let number = 0; number < SLOTS; number += 1) {
      const lock = await this.#lock(number)
      if (lock !== undefined) return this.#writeOwner(number, lock)
    }
    throw new SandglassError(
      'no_uid_left',
      `all ${SLOTS} slots in ${this.#state} are taken; end other hosts or use another state directory`,
    )
  }

  /** Lists the slots of all owners, living and dead. */
  async list(): Promise<OwnedSlot[]> {
    const numbers = listNames(this.#path()).flatMap((name) => {
      const number = /^\d{1,3}$/.test(name) ? Number(name) : SLOTS
      return number < SLOTS && (readText(this.#path(number)) ?? '') !== '' ? [number] : []
    })
    return Promise.all(
      numbers.map(async (number) => ({ number, path: this.#path(number), isHeld: await this.#isHeld(number) })),
    )
  }

  /** Lists the paths of slots that cannot be locked because they are not files. */
  listUnusable(): string[] {
    return listNames(this.#path())
      .map((name) => join(this.#path(), name))
      .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false)
  }

  /** Removes the id of a dead owner from its slot; false if another process has the slot. */
  async clear(number: number): Promise<boolean> {
    const lock = await this.#lock(number)
    if (lock !== undefined) this.#release(number, lock)
    return lock !== undefined
  }

  /** True if this owner is gone: its slot is free or has another owner. */
  async isGone({ slot, owner }: { readonly slot: number; readonly owner: string }): Promise<boolean> {
    if (!(await this.#isHeld(slot))) return true
    const found = readText(this.#path(slot)) ?? ''
    // The owner may still hold a locked slot whose content is damaged.
    return OWNER.test(found) && found !== owner
  }

  #writeOwner(number: number, lock: FileLock): Slot {
    const owner = randomUUID()
    try {
      writeFileSync(this.#path(number), owner)
    } catch (error) {
      lock.release()
      throw stateError(this.#state, error)
    }
    this.#held.add(number)
    let isReleased = false
    const release = (): void => {
      if (!isReleased) this.#release(number, lock) // after a release it may belong to another process
      isReleased = true
    }
    return { number, owner, release }
  }

  /** Removes the owner id first, so that in a slot with an owner id and without a lock the owner has died. */
  #release(number: number, lock: FileLock): void {
    this.#held.delete(number)
    try {
      truncateSync(this.#path(number))
    } catch {
      // The slot looks like that of a dead owner, and is cleared as such.
    }
    lock.release()
  }

  #path(number?: number): string {
    return number === undefined ? join(this.#state, 'slots') : join(this.#state, 'slots', String(number))
  }

  async #isHeld(number: number): Promise<boolean> {
    if (this.#held.has(number)) return true
    const path = this.#path(number)
    const found = lstatSync(path, { throwIfNoEntry: false })
    // Only a file can be locked; anything else counts as held.
    if (found?.isFile() !== true) return found !== undefined
    try {
      return await isLocked(path)
    } catch (error) {
      throw stateError(this.#state, error)
    }
  }

  async #lock(number: number): Promise<FileLock | undefined> {
    const path = this.#path(number)
    try {
      return await tryLock(path)
    } catch (error) {
      if (errnoOf(error) !== 'EISDIR') throw stateError(this.#state, error)
      // A directory cannot be locked, and must not be deleted. Take the next slot.
      return undefined
    }
  }
}
