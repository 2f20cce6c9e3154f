const TRIPLES = ['"""', "'''"] as const

/** Tracks triple-quoted Python strings from line to line. */
export class StringScanner {
  #open: (typeof TRIPLES)[number] | undefined

  /** True if the next line begins inside a string. */
  get isInside(): boolean {
    return this.#open !== undefined
  }

  /** Scans the next line. */
  scan(line: string): void {
    for (let at = 0; at < line.length;)
      at = this.#open === undefined ? this.#outside(line, at) : this.#inside(line, at, this.#open)
  }

  #inside(line: string, at: number, open: string): number {
    if (line.charAt(at) === '\\') return at + 2
    if (!line.startsWith(open, at)) return at + 1
    this.#open = undefined
    return at + open.length
  }

  #outside(line: string, at: number): number {
    const character = line.charAt(at)
    if (character === '#') return line.length
    if (character !== '"' && character !== "'") return at + 1
    this.#open = TRIPLES.find((triple) => line.startsWith(triple, at))
    return this.#open === undefined ? endOfString(line, at) : at + this.#open.length
  }
}

/** The index after a single-quoted string, which ends with its line at the latest. */
function endOfString(line: string, from: number): number {
  const quote = line.charAt(from)
  let at = from + 1
  while (at < line.length && line.charAt(at) !== quote) at += line.charAt(at) === '\\' ? 2 : 1
  return at + 1
}
