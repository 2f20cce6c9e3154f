import { CAPS } from '../../protocol/index.ts'

/**
 * Turns stdout or stderr of a script into text frames. Each of the first reads becomes a frame; later, small reads are gathered,
 * so that time limits the number of frames.
 */
export class OutputGatherer {
  bytes = 0
  readonly #emit: (text: string) => void
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #small = 0
  #held = ''
  #timer: NodeJS.Timeout | undefined

  constructor(emit: (text: string) => void) {
    this.#emit = emit
  }

  take(data: Uint8Array): void {
    this.bytes += data.length
    this.#held += this.#decoder.decode(data, { stream: true })
    if (data.length < CAPS.smallReadBytes) this.#small += 1
    if (this.#small <= CAPS.freeFrames || this.#held.length >= CAPS.smallReadBytes) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), CAPS.paceMs)
  }

  /** Ends the input. */
  end(): void {
    this.#held += this.#decoder.decode()
    this.#flush()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const text = this.#held
    this.#held = ''
    for (let start = 0; start < text.length;) {
      let end = Math.min(start + CAPS.textPerFrame, text.length)
      if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1
      this.#emit(text.slice(start, end))
      start = end
    }
  }
}
