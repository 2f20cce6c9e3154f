import { randomUUID } from 'node:crypto'
import { lstatSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../../errors/index.ts'
import { type FileLock, isLocked, tryLock } from '../../support/index.ts'
import { namesIn, readText, stateError } from './state-path.ts'

/** The place of one owner in the state directory: a lock, and on a root host the uids that go with it. */
export interface Slot {
  readonly number: number
  /** Unique for this holding of the slot: a later holder has another name. */
  readonly owner: string
  release(): void
}

/** A slot that has the name of a holder in it. */
export interface NamedSlot {
  readonly number: number
  readonly path: string
  /** True while that holder lives. Otherwise it ended without giving the slot back. */
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
      if (lock !== undefined) return this.#name(number, lock)
    }
    throw new SandglassError(
      'no_uid_left',
      `all ${SLOTS} slots in ${this.#state} are taken; end other hosts or use another state directory`,
    )
  }

  /** Lists the slots of all owners, living and dead. */
  async list(): Promise<NamedSlot[]> {
    const named = namesIn(this.#path()).flatMap((name) => {
      const number = /^\d{1,3}$/.test(name) ? Number(name) : SLOTS
      return number < SLOTS && (readText(this.#path(number)) ?? '') !== '' ? [number] : []
    })
    return Promise.all(
      named.map(async (number) => ({ number, path: this.#path(number), isHeld: await this.#isHeld(number) })),
    )
  }

  /** Lists the paths of slots that cannot be locked because they are not files. */
  listUnusable(): string[] {
    return namesIn(this.#path())
      .map((name) => join(this.#path(), name))
      .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false)
  }

  /** Takes the name of a dead holder out of its slot; false when another process has the slot. */
  async clear(number: number): Promise<boolean> {
    const lock = await this.#lock(number)
    if (lock !== undefined) this.#giveBack(number, lock)
    return lock !== undefined
  }

  /** True if this owner is gone: its slot is free or has another owner. */
  async isGone({ slot, owner }: { readonly slot: number; readonly owner: string }): Promise<boolean> {
    if (!(await this.#isHeld(slot))) return true
    const holder = readText(this.#path(slot)) ?? ''
    // The owner may hold a locked slot whose text is damaged.
    return OWNER.test(holder) && holder !== owner
  }

  #name(number: number, lock: FileLock): Slot {
    const owner = randomUUID()
    try {
      writeFileSync(this.#path(number), owner)
    } catch (error) {
      lock.release()
      throw stateError(this.#state, error)
    }
    this.#held.add(number)
    let isGivenBack = false
    const release = (): void => {
      if (!isGivenBack) this.#giveBack(number, lock) // after that it may belong to another process
      isGivenBack = true
    }
    return { number, owner, release }
  }

  /** Removes the name first, so that a slot with a name and without a lock is one whose holder died. */
  #giveBack(number: number, lock: FileLock): void {
    this.#held.delete(number)
    try {
      truncateSync(this.#path(number))
    } catch {
      // It reads as one whose holder died, and is cleared as such.
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
    // Only a file can be locked; anything else is unknown.
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
