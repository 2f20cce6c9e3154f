/**
 * Names the tool calls of one script by where they stand, not by when they came: `L12#3` is the third call of a tool in
 * line 12 (DESIGN: journal), so that calls of two runs of one script can be laid side by side.
 */
export class CallKeys {
  readonly #counts = new Map<string, number>()
  readonly #open = new Map<string, string>()
  /** Calls so far. */
  count = 0

  /** A call began in a line of the script; null where that is not known, as in threads of libraries. */
  began(callId: string, tool: string, line: number | null): string {
    this.count += 1
    const site = `${tool}:${line ?? '?'}`
    const ordinal = (this.#counts.get(site) ?? 0) + 1
    this.#counts.set(site, ordinal)
    const key = `L${line ?? '?'}#${ordinal}`
    this.#open.set(callId, key)
    return key
  }

  /** A call ended. */
  ended(callId: string): string {
    const key = this.#open.get(callId) ?? '?'
    this.#open.delete(callId)
    return key
  }
}
