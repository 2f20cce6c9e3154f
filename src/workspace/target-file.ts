import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { type SmallFile, unsavedError } from './small-files.ts'

/** The place of a new file. */
export type Place = Omit<SmallFile, 'size'>

/** A file of the host that is being written. */
export class TargetFile {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #written: string
  readonly #whole: string

  constructor(path: string, handle: FileHandle, written: string, whole: string) {
    this.#path = path
    this.#handle = handle
    this.#written = written
    this.#whole = whole
  }

  async write(bytes: Uint8Array): Promise<void> {
    await attempt(this.#path, () => this.#handle.writeFile(bytes))
  }

  async finish(): Promise<void> {
    await attempt(this.#path, async () => {
      await this.#handle.close()
      if (this.#written !== this.#whole) await rename(this.#written, this.#whole)
    })
  }

  /** Removes what was written of it. */
  async abandon(): Promise<void> {
    await this.#handle.close().catch(() => undefined)
    await unlink(this.#written).catch(() => undefined)
  }
}

/** Creates a file where nothing is. @throws SandglassError `no_space`, `path_refused` */
export async function createFile({ path, written, whole, permissions }: Place): Promise<TargetFile> {
  return attempt(path, async () => new TargetFile(path, await open(written, 'wx', permissions), written, whole))
}

/** Writes a small file. If that fails, nothing of it stays. */
export async function writeSmall(place: Place, pieces: readonly Uint8Array[]): Promise<void> {
  const file = await createFile(place)
  try {
    for (const piece of pieces) await file.write(piece)
    await file.finish()
  } catch (error) {
    await file.abandon()
    throw error
  }
}

/** Does something with a file. @throws SandglassError `no_space`, `path_refused`, which name its path */
export async function attempt<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw unsavedError(path, error)
  }
}
