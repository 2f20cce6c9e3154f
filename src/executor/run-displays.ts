import { CAPS, type DisplayFrame, isTextType } from '../protocol/index.ts'
import type { Redactor } from '../redaction/index.ts'
import { ChannelViolation } from './conversation-end.ts'
import type { CellGroup } from './prepare.ts'
import type { Display } from './result.ts'

const MiB = 1024 * 1024
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Bounds what a long session adds to a record on disk, and hands to its caller. */
const MAX_SESSION_BYTES = 1024 * MiB

/** The text of the warning about displays beyond that bound. */
export const SESSION_SHOWED_ALL: string =
  `displays were left out: a session and its branches show at most ${MAX_SESSION_BYTES / MiB} MiB together; ` +
  'open another session'

/** A display that was added. */
interface AddedDisplay {
  readonly display: Display
  /** Its index among the displays of the run. */
  readonly place: number
  /** The text of a warning, if there is one. It counts displays from 1, as the names of saved pictures do. */
  readonly problem: string | undefined
}

/** The displays of a run, in order and without secrets. */
export class RunDisplays {
  readonly all: Display[] = []
  /** Displays beyond the bound of the session. */
  leftOut = 0
  readonly #redactor: Redactor
  readonly #group: CellGroup | undefined
  #wireBytes = 0
  /** Characters of the texts that are kept. */
  #textChars = 0

  /** @param group that of a cell; undefined for a script. */
  constructor(redactor: Redactor, group: CellGroup | undefined) {
    this.#redactor = redactor
    this.#group = group
  }

  /**
   * @param wireBytes length of the line that carried the frame.
   * @returns undefined if it was left out, because its session has shown too much.
   * @throws ChannelViolation beyond the caps, which a broker never exceeds.
   */
  take({ kind, data: given, left_out, after }: DisplayFrame, wireBytes: number): AddedDisplay | undefined {
    this.#wireBytes += wireBytes
    if (this.all.length >= CAPS.displays) throw new ChannelViolation(`it sent more than ${CAPS.displays} displays`)
    if (this.#wireBytes > CAPS.displaysBytes) {
      throw new ChannelViolation(`it sent displays of more than ${CAPS.displaysBytes} bytes`)
    }
    if (!this.#isWithinSession(wireBytes)) return undefined
    const data: Record<string, string> = {}
    // The name of a type also comes from the script.
    const leftOut = new Set(left_out.map((type) => this.#redactor.text(type)))
    const withSecret: string[] = []
    for (const [type, content] of Object.entries(given)) {
      const name = this.#redactor.text(type)
      if (name !== type) withSecret.push(name)
      else if (isTextType(type)) {
        const text = this.#redactor.text(content)
        // A marker can be far longer than the value that it replaces.
        const isTooLong = text.length > CAPS.displayBytes || this.#textChars + text.length > CAPS.displaysBytes
        if (isTooLong) withSecret.push(type)
        else {
          data[type] = text
          this.#textChars += text.length
        }
      } else if (content.length % 4 !== 0 || !BASE64.test(content)) leftOut.add(type)
      else if (this.#holdsSecret(content)) withSecret.push(type)
      else data[type] = content
    }
    const place = this.all.length
    const display = { kind, data, leftOut: [...leftOut, ...withSecret], after: { stdout: after.stdout } }
    this.all.push(display)
    const problem =
      withSecret.length === 0
        ? undefined
        : `${withSecret.join(', ')} of display ${place + 1} held the value of a secret and was left out`
    return { display, place, problem }
  }

  #isWithinSession(wireBytes: number): boolean {
    if (this.#group === undefined) return true
    if (this.#group.displaysBytes + wireBytes > MAX_SESSION_BYTES) {
      this.leftOut += 1
      return false
    }
    this.#group.displaysBytes += wireBytes
    return true
  }

  #holdsSecret(base64: string): boolean {
    const search = this.#redactor.search()
    search.push(Buffer.from(base64, 'base64'))
    return search.finish()
  }
}
