import { KeptText } from './kept-text.ts'
import type { Redactor, TextRedactor } from '../redaction/index.ts'

/** One of a script's two output streams, as it arrives. */
export class OutputStream {
  readonly #redactor: TextRedactor
  readonly #kept: KeptText
  #receivedBytes = 0

  constructor(redactor: Redactor) {
    this.#redactor = redactor.stream()
    this.#kept = new KeptText(redactor.markers)
  }

  /** Adds a piece and returns the text that is safe to pass on now. */
  push(text: string): string {
    this.#receivedBytes += Buffer.byteLength(text)
    return this.#keep(this.#redactor.push(text))
  }

  /** Returns the text held back as a possible beginning of a secret. At the end of the stream it is redacted as a secret. */
  flush(): string {
    return this.#keep(this.#redactor.flush())
  }

  get text(): string {
    return this.#kept.text
  }

  /** @param written bytes that the harness counted at the pipe; 0 if it reported no count. */
  byteCount(written: number): number {
    return written === 0 ? this.#receivedBytes : written
  }

  /** Bytes that are not UTF-8 arrive as longer replacements, so more may arrive than was written, never less. */
  isTruncated(written: number): boolean {
    return this.#kept.cut || written > this.#receivedBytes
  }

  #keep(text: string): string {
    this.#kept.append(text)
    return text
  }
}
