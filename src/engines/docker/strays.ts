import type { Daemon } from './daemon.ts'
import { discard } from './discard.ts'

const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 60_000

/**
 * Containers of an engine of which nobody knows whether they are there: their daemon did not confirm that they were
 * removed. They are tried again and again, because a daemon that was killed in the middle of a removal may refuse it for
 * a while after it is back.
 */
export class Strays {
  readonly #names = new Set<string>()
  #daemon: Daemon | undefined
  #retryMs = FIRST_RETRY_MS
  #timer: NodeJS.Timeout | undefined

  /** By id, or by name where the daemon did not yet tell its id. */
  add(name: string): void {
    this.#names.add(name)
    this.#retryMs = FIRST_RETRY_MS
    this.#retry()
  }

  /** Removes them. What cannot be removed now is tried again later, while the process lives. Never rejects. */
  async sweep(daemon: Daemon): Promise<void> {
    this.#daemon = daemon
    await Promise.all(
      [...this.#names].map(async (name) => {
        if (await discard(daemon, name)) this.#names.delete(name)
      }),
    )
    this.#retry()
  }

  #retry(): void {
    clearTimeout(this.#timer)
    const daemon = this.#daemon
    if (this.#names.size === 0 || daemon === undefined) return
    this.#timer = setTimeout(() => void this.sweep(daemon), this.#retryMs)
    this.#timer.unref()
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS)
  }
}
