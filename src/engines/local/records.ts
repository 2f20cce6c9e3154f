import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type InfoFile, openInfoFile } from './info-file.ts'
import { listNames, stateError } from './state-path.ts'

/** The description of a living sandbox, from which another process can find and remove its resources. */
export interface SandboxRecord {
  readonly id: string
  /** The slot that the owner holds: its lock and the owner id in it show whether the owner lives. */
  readonly slot: number
  readonly owner: string
  readonly uid: number | null
  readonly host_pid: number
  readonly cgroups: readonly string[]
  readonly created_at: string
}

/** The records of the sandboxes of a state directory. */
export class Records {
  readonly #state: string

  constructor(state: string) {
    this.#state = state
  }

  /** @throws SandglassError `no_space` or `state_dir_unusable`. */
  write(record: SandboxRecord): void {
    const path = this.path(record.id)
    const temporary = `${path}.tmp`
    try {
      writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 })
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw stateError(this.#state, error)
    }
  }

  /** Removes a record, and all other files of the sandbox that a killed owner may have left in this directory. */
  remove(id: string): void {
    rmSync(this.#infoPath(id), { force: true })
    rmSync(this.#inputsPath(id), { force: true, recursive: true })
    rmSync(this.path(id), { force: true })
  }

  /**
   * Opens the file in which bubblewrap describes a sandbox.
   * @throws SandglassError `no_space` or `state_dir_unusable`.
   */
  openInfo(id: string): InfoFile {
    try {
      return openInfoFile(this.#infoPath(id))
    } catch (error) {
      throw stateError(this.#state, error)
    }
  }

  /**
   * Makes the directory of the inputs that are mounted in a sandbox. No other user may enter it: it holds links to
   * files in directories that may be private.
   * @param uid of the sandbox, if it has one of its own.
   * @throws SandglassError `no_space` or `state_dir_unusable`.
   */
  makeInputs(id: string, uid: number | undefined): string {
    const path = this.#inputsPath(id)
    try {
      mkdirSync(path, { mode: 0o700 })
      if (uid !== undefined) chownSync(path, uid, uid)
      return path
    } catch (error) {
      throw stateError(this.#state, error)
    }
  }

  /** Reads all records. One that cannot be read is renamed to `*.corrupt`, and its path is returned. */
  readAll(): { records: SandboxRecord[]; corrupt: string[] } {
    const records: SandboxRecord[] = []
    const corrupt: string[] = []
    const directory = join(this.#state, 'sandboxes')
    for (const name of listNames(directory)) {
      const path = join(directory, name)
      if (name.endsWith('.corrupt')) corrupt.push(path)
      if (!name.endsWith('.json')) continue
      const record = readRecord(path)
      if (record !== undefined && `${record.id}.json` === name) {
        records.push(record)
        continue
      }
      if (record === undefined && !listNames(directory).includes(name)) continue // its owner removed it meanwhile
      renameSync(path, `${path}.corrupt`)
      corrupt.push(`${path}.corrupt`)
    }
    return { records, corrupt }
  }

  /** The path of the record of a sandbox. */
  path(id: string): string {
    return join(this.#state, 'sandboxes', `${id}.json`)
  }

  #inputsPath(id: string): string {
    return join(this.#state, 'sandboxes', `${id}.inputs`)
  }

  #infoPath(id: string): string {
    return join(this.#state, 'sandboxes', `${id}.info`)
  }
}

/** The record in a file, or undefined when the file is missing or damaged. */
function readRecord(path: string): SandboxRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is SandboxRecord {
  if (typeof value !== 'object' || value === null) return false
  const { id, slot, owner, uid, host_pid: hostPid, cgroups } = value as Partial<SandboxRecord>
  return (
    typeof id === 'string' &&
    /^[\w-]{1,64}$/.test(id) &&
    Number.isInteger(slot) &&
    typeof owner === 'string' &&
    (uid === null || Number.isInteger(uid)) &&
    Number.isInteger(hostPid) &&
    Array.isArray(cgroups) &&
    cgroups.every((path) => typeof path === 'string' && /\/sandglass\/[\w-]+$/.test(path))
  )
}
