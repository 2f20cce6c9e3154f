import { SandglassError } from '../errors/index.ts'
import type { CallOptions, Workspace, WorkspaceManager } from './contract.ts'

/** Options of a {@link WorkspaceRegistry}. */
export interface WorkspaceRegistryOptions {
  /** Milliseconds without `acquire` after which a workspace is cleaned up. Default: never. */
  readonly ttlMs?: number
}

interface Entry {
  readonly manager: WorkspaceManager
  readonly ready: Promise<{ readonly ws: Workspace; readonly instance: string | undefined }>
  timer?: NodeJS.Timeout
}

const MAX_TTL_MS = 2 ** 31 - 1

/** The workspaces of one process, one for each id of the caller. */
export class WorkspaceRegistry implements AsyncDisposable {
  readonly #ttlMs: number | undefined
  readonly #entries = new Map<string, Entry>()

  /** @throws SandglassError `invalid_request` */
  constructor({ ttlMs }: WorkspaceRegistryOptions = {}) {
    if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs > 0 && ttlMs <= MAX_TTL_MS))
      throw new SandglassError('invalid_request', `ttlMs: ${ttlMs} is not a whole number from 1 to ${MAX_TTL_MS}`)
    this.#ttlMs = ttlMs
  }

  /**
   * Returns the workspace of an id; makes it if there is none, or if its instance is gone. Concurrent calls share one creation, which
   * continues when one of them is aborted; a failed creation is not kept.
   * @throws SandglassError `aborted`; the errors of the manager.
   */
  async acquire(manager: WorkspaceManager, id: string, options: CallOptions = {}): Promise<Workspace> {
    for (;;) {
      throwIfAborted(options.signal)
      const known = this.#entries.get(id)
      const entry = known ?? this.#create(manager, id)
      const { ws, instance } = await waitOrAbort(entry.ready, options.signal)
      if (known === undefined || manager.instanceOf === undefined) return this.#touch(id, entry, ws)
      const now = await manager.instanceOf(ws, options)
      if (now === instance) return this.#touch(id, entry, ws)
      // Only the first caller that notices removes the entry.
      if (this.#entries.get(id) === entry) await this.#remove(id, entry).catch(() => undefined)
    }
  }

  /** Cleans up the workspace of an id, if there is one. @throws the errors of the manager. */
  async release(id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry !== undefined) await this.#remove(id, entry)
  }

  /** Cleans up all of them. @throws AggregateError of the errors of managers. */
  async close(): Promise<void> {
    const results = await Promise.allSettled([...this.#entries.keys()].map((id) => this.release(id)))
    const errors = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []))
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} workspaces could not be cleaned up`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #create(manager: WorkspaceManager, id: string): Entry {
    const make = async (): Promise<Awaited<Entry['ready']>> => {
      const ws = await manager.createWorkspace(id)
      try {
        return { ws, instance: await manager.instanceOf?.(ws) }
      } catch (error) {
        await manager.cleanup(ws)
        throw error
      }
    }
    const entry: Entry = { manager, ready: make() }
    this.#entries.set(id, entry)
    entry.ready.catch(() => {
      if (this.#entries.get(id) === entry) this.#entries.delete(id)
    })
    return entry
  }

  #touch(id: string, entry: Entry, ws: Workspace): Workspace {
    clearTimeout(entry.timer)
    if (this.#ttlMs !== undefined && this.#entries.get(id) === entry)
      entry.timer = setTimeout(() => void this.#remove(id, entry).catch(() => undefined), this.#ttlMs).unref()
    return ws
  }

  async #remove(id: string, entry: Entry): Promise<void> {
    clearTimeout(entry.timer)
    if (this.#entries.get(id) === entry) this.#entries.delete(id)
    const made = await entry.ready.catch(() => undefined)
    if (made !== undefined) await entry.manager.cleanup(made.ws)
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new SandglassError('aborted', 'the call was aborted: no workspace was acquired')
}

/** Waits, at most until the signal is aborted; the work continues. */
async function waitOrAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  const { promise: left, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(new SandglassError('aborted', 'the wait for the workspace was aborted'))
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, left])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
