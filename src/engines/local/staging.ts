import { randomBytes, randomUUID } from 'node:crypto'
import { chmodSync, existsSync, linkSync, lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rename, rm, utimes } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errnoOf } from '../../errors/index.ts'
import type { Slot, Slots } from './slots.ts'
import { assertEnterable, listNames, stateError } from './state-path.ts'

const UNUSED_MS = 30 * 86_400_000

/** The part of a state directory that holds copies of files for sandboxes. */
export class Staging {
  readonly #state: string

  constructor(state: string) {
    this.#state = state
  }

  /** The directory of copies that everybody may read. */
  get publicPath(): string {
    return join(this.#state, 'staged')
  }

  /**
   * The directory of copies of files that only this user may read. A sandbox gets the path of one copy, and cannot list the
   * directory.
   */
  get privatePath(): string {
    return join(this.#state, 'private')
  }

  /** @throws SandglassError `state_dir_unusable` when a sandbox with this uid cannot enter it. */
  prepare(uid: number): void {
    try {
      chmodSync(this.privatePath, 0o711) // sandboxes can traverse it and cannot list it
    } catch (error) {
      throw stateError(this.#state, error)
    }
    assertEnterable(this.#state, this.publicPath, uid)
  }

  /** Returns the secret key of this directory, from which the names in {@link privatePath} are derived. */
  privateKey(): Buffer {
    const path = join(this.privatePath, 'key')
    const temporary = `${path}.${randomUUID()}`
    try {
      if (!existsSync(path)) {
        writeFileSync(temporary, randomBytes(32), { mode: 0o600 })
        linkSync(temporary, path)
      }
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw stateError(this.#state, error) // unless another process created it first
    } finally {
      rmSync(temporary, { force: true })
    }
    return readFileSync(path)
  }

  /**
   * Makes a copy if it does not exist. Concurrent calls are safe: the last step is a rename.
   * @throws SandglassError `no_space` or `state_dir_unusable`.
   */
  async copy(slot: Slot, target: string, fill: (temporary: string) => Promise<void>): Promise<string> {
    if (existsSync(target)) return target
    const temporary = join(dirname(target), `.${slot.number}-${slot.owner}-${randomUUID()}`)
    try {
      await fill(temporary)
      await rename(temporary, target)
    } catch (error) {
      await rm(temporary, { recursive: true, force: true })
      if (existsSync(target)) return target
      throw stateError(this.#state, error)
    }
    return target
  }

  /** Lists the copies that a dead owner did not finish, and those not used for a month. */
  async listUnused(slots: Slots): Promise<string[]> {
    const unused: string[] = []
    for (const path of [this.privatePath, this.publicPath].flatMap((at) =>
      listNames(at).map((name) => join(at, name)),
    )) {
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found?.isDirectory() !== true) continue
      const [, slot, owner] = /^\.(\d{1,3})-([\da-f-]{36})-/.exec(basename(path)) ?? []
      const isGone = slot !== undefined && owner !== undefined && (await slots.isGone({ slot: Number(slot), owner }))
      if (isGone || Date.now() - found.mtimeMs > UNUSED_MS) unused.push(path)
    }
    return unused
  }
}

/** Marks a copy as used now. Copies not used for a month are removed. */
export async function touch(path: string): Promise<void> {
  const now = new Date()
  await utimes(path, now, now).catch(() => undefined) // a failure affects only its age
}
