import type { Daemon } from './daemon.ts'
import { discard } from './discard.ts'

/** Containers of an engine of which nobody knows whether they are there: their daemon did not answer when it was to remove them. */
export class Strays {
  readonly #names = new Set<string>()

  /** By id, or by name where the daemon did not yet tell its id. */
  add(name: string): void {
    this.#names.add(name)
  }

  /** Removes them. What cannot be removed now is tried the next time. Never rejects. */
  async sweep(daemon: Daemon): Promise<void> {
    await Promise.all(
      [...this.#names].map(async (name) => {
        if (await discard(daemon, name)) this.#names.delete(name)
      }),
    )
  }
}
