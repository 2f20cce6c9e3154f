const MARKER = 'INITIALIZED SERVER '
/** A port has at most five digits. */
const MAX_LENGTH = MARKER.length + 5

/** Finds the marker: the first line of stdout, in which the endpoint of a run names its port, such as `INITIALIZED SERVER 40123`. */
export class ServerMarker {
  #held = ''

  /**
   * Adds a piece of stdout, which may be cut anywhere.
   * @returns the port and the output after the marker; undefined while the marker is incomplete; null if the output begins with anything else.
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
