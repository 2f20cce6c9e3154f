import { removeCgroups } from './leftovers.ts'

const AGAIN_MS = 1000

/** The groups of a sandbox, and what must wait until they are gone. */
interface Rest {
  readonly paths: readonly string[]
  readonly release: () => void
}

/**
 * What sandboxes that are gone have left on the host for now: on an overloaded machine the kernel may take longer to end what
 * is in a control group than anybody waits, and a record cannot be removed from a file system that became read-only. It is
 * tried again; the record and the uid stay taken until then.
 */
export class Unremoved {
  #rests: Rest[] = []
  #timer: NodeJS.Timeout | undefined
  #trying: Promise<void> = Promise.resolve()

  /**
   * Removes the groups of a sandbox, waiting for at most 3 s each, and calls `release` when they are gone. Both are tried
   * again later where they fail, `release` by throwing.
   */
  async remove(paths: readonly string[], release: () => void): Promise<void> {
    const kept = await removeCgroups(paths)
    if (kept.length === 0 && succeeds(release)) return
    this.#rests.push({ paths: kept, release })
    this.#timer ??= setTimeout(() => {
      this.#trying = this.#tryAgain()
    }, AGAIN_MS).unref()
  }

  /** Tries a last time. What is still there then is for the next start, which finds it by its record. */
  async close(): Promise<void> {
    await this.#trying
    await this.#tryAgain()
    clearTimeout(this.#timer)
  }

  async #tryAgain(): Promise<void> {
    this.#timer = undefined
    const rests = this.#rests
    this.#rests = []
    for (const { paths, release } of rests) await this.remove(paths, release)
  }
}

function succeeds(release: () => void): boolean {
  try {
    release()
    return true
  } catch {
    return false // a rejected end of a sandbox would take the host's process along
  }
}
