import type { Daemon } from './daemon.ts'
import { discard } from './discard.ts'

const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 60_000

/**
 * Retries the removal of containers that the daemon did not confirm as removed. A daemon that was killed in the middle of a
 * removal may refuse it for a while after its restart.
 */
export class OrphanRetry {
  readonly #names = new Set<string>()
  #daemon: Daemon | undefined
  #retryMs = FIRST_RETRY_MS
  #timer: NodeJS.Timeout | undefined

  /** Adds a container by id, or by name if the daemon did not return an id. */
  add(name: string): void {
    this.#names.add(name)
    this.#retryMs = FIRST_RETRY_MS
    this.#schedule()
  }

  /** Removes the containers. Retries those that cannot be removed now, as long as the process runs. Never rejects. */
  async removeAll(daemon: Daemon): Promise<void> {
    this.#daemon = daemon
    await Promise.all(
      [...this.#names].map(async (name) => {
        if (await discard(daemon, name)) this.#names.delete(name)
      }),
    )
    this.#schedule()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    const daemon = this.#daemon
    if (this.#names.size === 0 || daemon === undefined) return
    this.#timer = setTimeout(() => void this.removeAll(daemon), this.#retryMs)
    this.#timer.unref()
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS)
  }
}
