const MAX_KEPT_BYTES = 1024 * 1024
/** Number of pieces that are joined at once, because a string that is concatenated from a million pieces holds a node for each. */
const MAX_PIECES = 1024

/** The head of a stream of text: the first MiB, cut between characters and not inside a marker. */
export class KeptText {
  readonly #markers: readonly string[]
  #text = ''
  #pieces: string[] = []
  #room = MAX_KEPT_BYTES
  #cut = false

  /** @param markers texts that must not be cut in two; each arrives within one piece. */
  constructor(markers: readonly string[]) {
    this.#markers = markers
  }

  append(piece: string): void {
    if (this.#cut || piece === '') return
    const bytes = Buffer.byteLength(piece)
    if (bytes <= this.#room) {
      this.#add(piece)
      this.#room -= bytes
      return
    }
    this.#add(this.#headOf(piece))
    this.#cut = true
  }

  get text(): string {
    this.#join()
    return this.#text
  }

  /** True if something was dropped. */
  get cut(): boolean {
    return this.#cut
  }

  #add(piece: string): void {
    this.#pieces.push(piece)
    if (this.#pieces.length >= MAX_PIECES) this.#join()
  }

  #join(): void {
    this.#text += this.#pieces.join('')
    this.#pieces = []
  }

  #headOf(piece: string): string {
    const head = headOf(piece, this.#room)
    let end = head.length
    for (const marker of this.#markers) {
      const from = Math.max(0, head.length - marker.length + 1)
      const at = piece.slice(from, head.length + marker.length - 1).indexOf(marker)
      if (at !== -1) end = Math.min(end, from + at)
    }
    return head.slice(0, end)
  }
}

/** The longest beginning of a text that takes at most `bytes` in UTF-8. */
function headOf(text: string, bytes: number): string {
  const encoded = Buffer.from(text)
  let end = bytes
  // 10xxxxxx continues a character: go back to where one starts.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return encoded.toString('utf8', 0, end)
}
