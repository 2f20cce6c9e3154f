import { randomBytes, randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { errnoOf, SandglassError } from '../../errors/index.ts'
import { makeDirectory } from '../../support/index.ts'
import { type FileLock, isLocked, tryLock } from './flock.ts'
import { type InfoFile, openInfoFile } from './info-file.ts'
import { obstacle } from './reach.ts'
import { readRecord, type SandboxRecord } from './sandbox-record.ts'
import { NAMED_BY, stateError, unusableState } from './state-error.ts'

/** One owner's place in the state directory: a lock, and on a root host the uids that go with it. */
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
  /** Whether that holder lives: else it ended without giving the slot back. */
  readonly isHeld: boolean
}

const SLOTS = 512
const UNUSED_MS = 30 * 86_400_000
const OWNER = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** Locks, records and staged files of all processes that share a directory. */
export class StateDirectory {
  readonly path: string
  /** Slots of this process, which need not be asked for. */
  readonly #held = new Set<number>()

  constructor(path: string) {
    this.path = resolve(path)
  }

  /**
   * Makes what is missing, such that sandboxes with this uid can read what is staged.
   * @throws SandglassError `state_dir_unusable` or `no_space`, naming the path.
   */
  prepare(uid: number): void {
    try {
      for (const name of ['', 'slots', 'sandboxes', 'staged', 'private']) {
        const path = join(this.path, name)
        makePassable(path, uid)
        refuseOthers(this.path, path)
      }
      // Can be passed, not listed.
      chmodSync(this.privatePath, 0o711)
      const closed = obstacle(this.stagedPath, uid)
      if (closed !== undefined) {
        const remedy = `chmod o+x it, or name a state directory elsewhere (${NAMED_BY})`
        throw unusableState(this.path, `a sandbox with uid ${uid} cannot enter ${closed}: ${remedy}`)
      }
      const probe = join(this.path, `.probe-${randomUUID()}`)
      writeFileSync(probe, 'x')
      rmSync(probe)
    } catch (error) {
      throw stateError(this.path, error)
    }
  }

  get stagedPath(): string {
    return join(this.path, 'staged')
  }

  /** Copies of what only this user may read: sandboxes are told the name, nobody else can list or guess it. */
  get privatePath(): string {
    return join(this.path, 'private')
  }

  /** A secret of this directory, from which names in {@link privatePath} are made. */
  privateKey(): Buffer {
    const path = join(this.privatePath, 'key')
    const temporary = `${path}.${randomUUID()}`
    try {
      if (!existsSync(path)) {
        writeFileSync(temporary, randomBytes(32), { mode: 0o600 })
        linkSync(temporary, path)
      }
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw stateError(this.path, error) // another process was first
    } finally {
      rmSync(temporary, { force: true })
    }
    return readFileSync(path)
  }

  /** Copies that nobody makes or uses any more. */
  async unusedDirectories(): Promise<string[]> {
    const unused: string[] = []
    for (const path of [this.privatePath, this.stagedPath].flatMap((at) => listed(at).map((name) => join(at, name)))) {
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found?.isDirectory() !== true) continue
      const [, slot, owner] = /^\.(\d{1,3})-([\da-f-]{36})-/.exec(basename(path)) ?? []
      const gone = slot !== undefined && owner !== undefined && (await this.isOrphan({ slot: Number(slot), owner }))
      if (gone || Date.now() - found.mtimeMs > UNUSED_MS) unused.push(path)
    }
    return unused
  }

  /** Takes the first free slot for this process. */
  async takeSlot(): Promise<Slot> {
    for (let number = 0; number < SLOTS; number += 1) {
      const lock = await this.#lock(number)
      if (lock === undefined) continue
      const owner = randomUUID()
      try {
        writeFileSync(this.#slotPath(number), owner)
      } catch (error) {
        lock.release()
        throw stateError(this.path, error)
      }
      this.#held.add(number)
      let isGivenBack = false
      const release = (): void => {
        if (!isGivenBack) this.#giveBack(number, lock) // a second time, it may be another one's
        isGivenBack = true
      }
      return { number, owner, release }
    }
    throw new SandglassError(
      'no_uid_left',
      `all ${SLOTS} slots in ${this.path} are taken; end other hosts or use another state directory`,
    )
  }

  /** Every slot that somebody holds, or held until death. */
  async namedSlots(): Promise<NamedSlot[]> {
    const directory = join(this.path, 'slots')
    const named = listed(directory).flatMap((name) => {
      const number = /^\d{1,3}$/.test(name) ? Number(name) : SLOTS
      return number < SLOTS && (readText(this.#slotPath(number)) ?? '') !== '' ? [number] : []
    })
    return Promise.all(
      named.map(async (number) => ({ number, path: this.#slotPath(number), isHeld: await this.#isHeld(number) })),
    )
  }

  /** Takes the name of a dead holder out of its slot; false when somebody has the slot by now. */
  async clearSlot(number: number): Promise<boolean> {
    const lock = await this.#lock(number)
    if (lock !== undefined) this.#giveBack(number, lock)
    return lock !== undefined
  }

  /** Whether the owner of a record is gone: nobody holds its slot, or somebody else does. */
  async isOrphan(record: Pick<SandboxRecord, 'slot' | 'owner'>): Promise<boolean> {
    if (!(await this.#isHeld(record.slot))) return true
    const holder = readText(this.#slotPath(record.slot)) ?? ''
    // A held slot whose text is damaged tells nothing: whoever holds it may be the owner.
    return OWNER.test(holder) && holder !== record.owner
  }

  /** The name goes first, so that a slot with a name and without a lock is one whose holder died. */
  #giveBack(number: number, lock: FileLock): void {
    this.#held.delete(number)
    try {
      truncateSync(this.#slotPath(number))
    } catch {
      // It reads as one whose holder died, and is cleared as such.
    }
    lock.release()
  }

  #slotPath(slot: number): string {
    return join(this.path, 'slots', String(slot))
  }

  async #isHeld(slot: number): Promise<boolean> {
    if (this.#held.has(slot)) return true
    const path = this.#slotPath(slot)
    const found = lstatSync(path, { throwIfNoEntry: false })
    // What is no file cannot be locked, and tells nothing.
    if (found?.isFile() !== true) return found !== undefined
    try {
      return await isLocked(path)
    } catch (error) {
      throw stateError(this.path, error)
    }
  }

  async #lock(slot: number): Promise<FileLock | undefined> {
    const path = this.#slotPath(slot)
    try {
      return await tryLock(path)
    } catch (error) {
      if (errnoOf(error) !== 'EISDIR') throw stateError(this.path, error)
      // Not ours to delete, and nobody can hold it: the next slot does as well.
      return undefined
    }
  }

  /** @throws SandglassError `no_space` or `state_dir_unusable`. */
  writeRecord(record: SandboxRecord): void {
    const path = this.#recordPath(record.id)
    const temporary = `${path}.tmp`
    try {
      writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 })
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw stateError(this.path, error)
    }
  }

  /** With all that a killed owner may have left of the sandbox in this directory. */
  removeRecord(id: string): void {
    rmSync(this.#infoPath(id), { force: true })
    rmSync(this.#recordPath(id), { force: true })
  }

  /** @throws SandglassError `no_space` or `state_dir_unusable`. */
  openInfo(id: string): InfoFile {
    try {
      return openInfoFile(this.#infoPath(id))
    } catch (error) {
      throw stateError(this.path, error)
    }
  }

  /** All records; one that cannot be read is set aside as `*.corrupt` and named, as is a slot that is no file. */
  records(): { records: SandboxRecord[]; corrupt: string[] } {
    const records: SandboxRecord[] = []
    const corrupt = this.#unusableSlots()
    const directory = join(this.path, 'sandboxes')
    for (const name of listed(directory)) {
      const path = join(directory, name)
      if (name.endsWith('.corrupt')) corrupt.push(path)
      if (!name.endsWith('.json')) continue
      const record = readRecord(path)
      if (record !== undefined && `${record.id}.json` === name) {
        records.push(record)
        continue
      }
      if (record === undefined && !listed(directory).includes(name)) continue // removed meanwhile by its owner
      renameSync(path, `${path}.corrupt`)
      corrupt.push(`${path}.corrupt`)
    }
    return { records, corrupt }
  }

  #unusableSlots(): string[] {
    const directory = join(this.path, 'slots')
    return listed(directory)
      .map((name) => join(directory, name))
      .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false)
  }

  #infoPath(id: string): string {
    return join(this.path, 'sandboxes', `${id}.info`)
  }

  #recordPath(id: string): string {
    return join(this.path, 'sandboxes', `${id}.json`)
  }
}

/** The default state directory of this user. */
export function defaultStateDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env['SANDGLASS_STATE_DIR'] !== undefined && env['SANDGLASS_STATE_DIR'] !== '') return env['SANDGLASS_STATE_DIR']
  if (process.getuid?.() === 0) return '/var/lib/sandglass'
  const base = env['XDG_STATE_HOME']
  return join(base !== undefined && base.startsWith('/') ? base : join(homedir(), '.local', 'state'), 'sandglass')
}

/** Whatever the umask says, sandboxes of another uid can pass what is made here; what is private in it has a mode of its own. */
function makePassable(path: string, uid: number): void {
  const made = makeDirectory(path, { own: 0o755, above: 0o755 })
  if (uid !== process.getuid?.()) for (const at of made) chmodSync(at, 0o755)
}

/** What is staged here becomes PID 1 of every sandbox, and records name what to kill: nobody else may write them. */
function refuseOthers(state: string, path: string): void {
  const { uid, mode } = statSync(path)
  const own = process.getuid?.()
  if (uid !== own) {
    throw unusableState(
      state,
      `${path} belongs to uid ${uid}, not to uid ${own}: chown it, or name another one (${NAMED_BY})`,
    )
  }
  if ((mode & 0o022) !== 0) {
    throw unusableState(
      state,
      `${path} can be written by others: chmod go-w it if all in it is yours, or name another one (${NAMED_BY})`,
    )
  }
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted()
  } catch {
    return []
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
