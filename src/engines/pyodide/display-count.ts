import { CAPS } from '../../protocol/index.ts'

/** The id of the run and the place in the output, which are added to the line of a display. */
const HEAD_BYTES = 4096

/** Limits the number and the size of the displays of one run. */
export class DisplayCount {
  /** True if displays were left out. */
  areOver = false
  #count = 0
  #bytes = 0

  /** Counts a display. Returns false if there are too many, or if it is too large. */
  admit(bytes: number): boolean {
    const isTooMuch = this.#count >= CAPS.displays || this.#bytes + bytes > CAPS.displaysBytes
    if (isTooMuch || bytes > CAPS.displayBytes + HEAD_BYTES) {
      this.areOver = true
      return false
    }
    this.#count += 1
    this.#bytes += bytes
    return true
  }

  /** The warning that displays were left out, if they were. */
  get warnings(): { code: string; message: string }[] {
    if (!this.areOver) return []
    const limits = `${CAPS.displays} displays and ${CAPS.displaysBytes / 1024 / 1024} MiB together`
    return [{ code: 'displays_left_out', message: `displays were left out: a run shows at most ${limits}` }]
  }
}
