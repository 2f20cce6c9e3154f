import { KeptText } from './kept-text.ts'
import type { Redactor, TextRedactor } from './redact.ts'

/** One of a script's two output streams, as it arrives. */
export class OutputStream {
  readonly #redactor: TextRedactor
  readonly #kept: KeptText
  #receivedBytes = 0

  constructor(redactor: Redactor) {
    this.#redactor = redactor.stream()
    this.#kept = new KeptText(redactor.markers)
  }

  /** Takes a piece; gives what may be told of it now. */
  push(text: string): string {
    this.#receivedBytes += Buffer.byteLength(text)
    return this.#keep(this.#redactor.push(text))
  }

  /** What was held back as the possible beginning of a secret; now that it ends there, it counts as one. */
  flush(): string {
    return this.#keep(this.#redactor.flush())
  }

  get text(): string {
    return this.#kept.text
  }

  /** @param written what the harness counted at the pipe; 0 when it did not say. */
  bytes(written: number): number {
    return written === 0 ? this.#receivedBytes : written
  }

  /** Bytes that are no UTF-8 arrive replaced by longer ones, so that more may arrive than was written, never less. */
  truncated(written: number): boolean {
    return this.#kept.cut || written > this.#receivedBytes
  }

  #keep(text: string): string {
    this.#kept.append(text)
    return text
  }
}
