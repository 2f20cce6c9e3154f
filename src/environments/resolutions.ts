import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Declaration, isDeclaration } from './declaration.ts'
import { namesIn, readJson, writeJson } from './json-file.ts'

/** The recorded resolution of a request. */
export interface ResolvedRequest {
  /** The key of the environment. */
  readonly key: string
  readonly declaration: Declaration
  readonly lock: string
}

/** Maximum number of resolutions that are kept; any other request is resolved again. */
const MAX_REQUESTS = 1000

/** The resolutions of requests, one file for each request. */
export class Resolutions {
  readonly #directory: string
  readonly #work: string

  /** @param work a directory on the same file system, for temporary files. */
  constructor(directory: string, work: string) {
    this.#directory = directory
    this.#work = work
  }

  async find(requestKey: string): Promise<ResolvedRequest | undefined> {
    const found = await readJson<ResolvedRequest>(this.#pathOf(requestKey))
    return typeof found?.key === 'string' && typeof found.lock === 'string' ? found : undefined
  }

  /** @throws the error of the failed system call. */
  async save(requestKey: string, request: ResolvedRequest): Promise<void> {
    await writeJson(this.#pathOf(requestKey), request, this.#work)
  }

  /** The requests that led to an environment. */
  async requestsFor(key: string): Promise<readonly Declaration[]> {
    const all: Declaration[] = []
    for (const name of await namesIn(this.#directory)) {
      const found = await readJson<ResolvedRequest>(join(this.#directory, name))
      if (found?.key === key && isDeclaration(found.declaration)) all.push(found.declaration)
    }
    return all
  }

  /** Removes the oldest resolutions, because scripts can make any number of different requests. */
  async evict(): Promise<void> {
    const names = await namesIn(this.#directory)
    if (names.length <= MAX_REQUESTS) return
    const times = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#directory, name)
        return { path, at: (await stat(path).catch(() => undefined))?.mtimeMs ?? 0 }
      }),
    )
    const old = times.toSorted((a, b) => a.at - b.at).slice(0, names.length - MAX_REQUESTS)
    await Promise.all(old.map(({ path }) => rm(path, { force: true })))
  }

  #pathOf(requestKey: string): string {
    return join(this.#directory, `${requestKey}.json`)
  }
}
