import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { type SmallFile, unsavedError } from './small-files.ts'

/** The place of a new file. */
export type Place = Omit<SmallFile, 'size'>

/** A file of the host that is being written. */
export class TargetFile {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #temporaryPath: string
  readonly #finalPath: string

  constructor(path: string, handle: FileHandle, temporaryPath: string, finalPath: string) {
    this.#path = path
    this.#handle = handle
    this.#temporaryPath = temporaryPath
    this.#finalPath = finalPath
  }

  async write(bytes: Uint8Array): Promise<void> {
    await attempt(this.#path, () => this.#handle.writeFile(bytes))
  }

  async finish(): Promise<void> {
    await attempt(this.#path, async () => {
      await this.#handle.close()
      if (this.#temporaryPath !== this.#finalPath) await rename(this.#temporaryPath, this.#finalPath)
    })
  }

  /** Removes the incomplete file. */
  async abandon(): Promise<void> {
    await this.#handle.close().catch(() => undefined)
    await unlink(this.#temporaryPath).catch(() => undefined)
  }
}

/** Creates a file at a path that does not exist. @throws SandglassError `no_space`, `path_refused` */
export async function createFile({ path, temporaryPath, finalPath, permissions }: Place): Promise<TargetFile> {
  return attempt(
    path,
    async () => new TargetFile(path, await open(temporaryPath, 'wx', permissions), temporaryPath, finalPath),
  )
}

/** Writes a small file. If that fails, removes it. */
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

/** Runs a step on a file. @throws SandglassError `no_space`, `path_refused`, which name its path */
export async function attempt<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw unsavedError(path, error)
  }
}
