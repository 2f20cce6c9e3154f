/** Writes the output of a script to a log: complete lines, each with a prefix. */
export class LineLog {
  readonly #name: string
  readonly #label: string
  readonly #log: (line: string) => void
  readonly #streams: boolean
  readonly #rest = { stdout: '', stderr: '' }

  /** @param streams false to log only the actions of the executor and no output. */
  constructor(name: string, label: string, log: (line: string) => void, streams: boolean) {
    this.#name = name
    this.#label = label
    this.#log = log
    this.#streams = streams
  }

  /** Logs an action of the executor. */
  note(text: string): void {
    this.#log(`[${this.#name}] ${escapeControls(text)}`)
  }

  add(stream: 'stdout' | 'stderr', text: string): void {
    if (!this.#streams) return
    const [first = '', ...lines] = text.split('\n')
    this.#rest[stream] += first
    for (const line of lines) {
      this.#write(stream, this.#rest[stream])
      this.#rest[stream] = line
    }
  }

  /** Logs the last line of each stream if it has no line break. */
  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      if (this.#rest[stream] !== '') this.#write(stream, this.#rest[stream])
      this.#rest[stream] = ''
    }
  }

  #write(stream: string, line: string): void {
    this.#log(`[${this.#name}][${this.#label}][${stream}] ${escapeControls(line)}`)
  }
}

/** Replaces control and bidirectional characters by their codes, so that a text cannot control a terminal or change its order. */
function escapeControls(text: string): string {
  return text.replace(/[^\P{Cc}\t\n]|\p{Bidi_Control}/gu, (one) => {
    const code = one.charCodeAt(0).toString(16)
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`
  })
}
