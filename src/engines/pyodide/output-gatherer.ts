/** Characters of one frame of output. */
const MAX_TEXT = 64 * 1024
/** So many reads become a frame each at once; then small ones gather, so that time bounds how many frames there are. */
const FREE_FRAMES = 1000
const SMALL_BYTES = 4096
const PACE_MS = 1

/** stdout or stderr of a script: bytes in, text in pieces of a fair size out. */
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
    if (data.length < SMALL_BYTES) this.#small += 1
    if (this.#small <= FREE_FRAMES || this.#held.length >= SMALL_BYTES) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), PACE_MS)
  }

  /** Nothing more comes. */
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
      let end = Math.min(start + MAX_TEXT, text.length)
      if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1
      this.#emit(text.slice(start, end))
      start = end
    }
  }
}
