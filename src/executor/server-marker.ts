const MARKER = 'INITIALIZED SERVER '
/** A port has at most five digits. */
const MAX_LENGTH = MARKER.length + 5

/** Finds the line with which the endpoint of a run says its port: `INITIALIZED SERVER 40123`. It comes before all other output. */
export class ServerMarker {
  #held = ''

  /**
   * Takes a piece of stdout, cut anywhere.
   * @returns the port, and the output behind the line; undefined while the line is incomplete; null if the output begins otherwise.
   */
  push(text: string): { readonly port: number; readonly rest: string } | null | undefined {
    this.#held += text
    const end = this.#held.indexOf('\n')
    if (end === -1) return this.#canBecomeMarker() ? undefined : null
    const found = /^INITIALIZED SERVER ([1-9]\d{0,4})$/.exec(this.#held.slice(0, end))
    const port = Number(found?.[1])
    return port <= 65_535 ? { port, rest: this.#held.slice(end + 1) } : null
  }

  #canBecomeMarker(): boolean {
    return this.#held.length <= MAX_LENGTH && MARKER.startsWith(this.#held.slice(0, MARKER.length))
  }
}
