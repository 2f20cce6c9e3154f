const MAX_KEPT_BYTES = 1024 * 1024

/** The head of a stream of text: the first MiB, cut between characters. */
export class KeptText {
  #text = ''
  #room = MAX_KEPT_BYTES
  #cut = false

  append(piece: string): void {
    if (this.#cut || piece === '') return
    const bytes = Buffer.byteLength(piece)
    if (bytes <= this.#room) {
      this.#text += piece
      this.#room -= bytes
      return
    }
    this.#text += headOf(piece, this.#room)
    this.#cut = true
  }

  get text(): string {
    return this.#text
  }

  /** Whether something was dropped. */
  get cut(): boolean {
    return this.#cut
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
