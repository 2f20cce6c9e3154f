/**
 * Names the tool calls of one script by position, not by time, so that two runs of the script can be compared. `L12#3` is the
 * third call of the same tool in line 12.
 */
export class CallKeys {
  readonly #counts = new Map<string, number>()
  readonly #open = new Map<string, string>()
  /** Calls so far. */
  count = 0

  /** Adds a call and returns its key. The line is null if it is unknown, for example in a thread of a library. */
  start(callId: string, tool: string, line: number | null): string {
    this.count += 1
    const site = `${tool}:${line ?? '?'}`
    const ordinal = (this.#counts.get(site) ?? 0) + 1
    this.#counts.set(site, ordinal)
    const key = `L${line ?? '?'}#${ordinal}`
    this.#open.set(callId, key)
    return key
  }

  /** The key of a call that has not ended. */
  keyOf(callId: string): string | undefined {
    return this.#open.get(callId)
  }

  /** Removes a call that ended and returns its key; undefined for a call that never started here. */
  end(callId: string): string | undefined {
    const key = this.#open.get(callId)
    this.#open.delete(callId)
    return key
  }
}
